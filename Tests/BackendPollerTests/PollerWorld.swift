import BackendConnections
import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import HTTPClient
import Logging
import Model
import ObjectStore
import Postgres
import Secrets
import TestSupport
import Testing

@testable import BackendPoller
@testable import KeyedWorker
@testable import Sandbox

/// The scheduler and the handler of the poller with a PostgreSQL database and an e-conomic emulator of their own. A
/// worker's steps are made one by one, so that tests can interleave them.
struct PollerWorld: ~Copyable {
    static let people = [("ana@example.com", 7), ("bo@example.com", 8), ("eva@example.com", 9)]
    static let secretKey = Data((0..<32).map { UInt8($0) }).base64EncodedString()

    var acme: TestEnvironment
    let client: Client
    let url: String
    private var fetcher: RealmFetcher
    let backend: any TimeBackend
    private var handler: PollHandler
    private var scheduler: Scheduler
    /// Results that are not decided yet, by poll; a crash loses them.
    private var answers: [UUID: PollHandler.CallResult] = [:]
    /// The versions of each record in the order of their writes, `gone` for a tombstone.
    private(set) var written: [ObjectKey: [String]] = [:]
    private let decoder = JSONDecoder()

    /// - Parameter entryDays: Past days whose entries are polled.
    init(
        port: Int, kind: String = "economic", password: String = "sandbox-app:sandbox-grant", entryDays: Int = 60
    ) throws {
        var acme = try TestEnvironment()
        let client = Client()
        let url = "http://127.0.0.1:\(port)"
        let secrets = try SecretBox([Self.secretKey])
        let sealed = Bytea(
            try secrets.seal(password, at: SecretContext.backendPassword(acme.id)))
        try acme.setBackend(.init(kind: kind, url: url, password: sealed))
        let fetcher = try Self.fetcher(client, entryDays: entryDays)
        let backend = try fetcher.adapters.adapter(of: acme.id, on: &acme.connection)
        let scheduler = try Scheduler(
            conninfo: acme.conninfo, fetcher: fetcher, staleMax: .seconds(86_400), logger: Logger(label: "scheduler"))
        (self.client, self.url, self.fetcher, self.backend) = (client, url, fetcher, backend)
        handler = PollHandler(fetcher, logger: Logger(label: "poller"))
        self.scheduler = scheduler
        self.acme = acme
    }

    /// Adds a person with an initialized realm.
    mutating func addPerson(_ email: String, _ number: Int) throws {
        try addPerson(email, reference: ["employeeNumber": "\(number)"])
    }

    mutating func addPerson(_ email: String, reference: [String: String]) throws {
        try acme.addPerson(email, reference: reference)
        try acme.put(
            [(UUID(), #"{"userId": "\#(email)", "path": "/users/\#(email)", "isInitialized": true}"#)], .realms,
            into: .users)
    }

    static var today: Day { Timestamp.now().day }

    // MARK: The back end

    var emulator: RemoteEmulator { RemoteEmulator(url: url, client: client) }

    @discardableResult
    func post(_ path: String, _ json: String) async throws -> Response { try await emulator.post(path, json) }

    func stats(_ name: String) async throws -> Int { try await emulator.stats()[name] ?? 0 }

    /// - Returns: The number of the time entry.
    func create(of person: Int, on day: Day = today, hours: Int = 1) async throws -> Int {
        let (email, number) = Self.people[person]
        let id = try await backend.create(
            Submission(
                marker: "", person: BackendPerson(email: email, reference: ["employeeNumber": "\(number)"]), day: day,
                durationSeconds: hours * 3_600, text: "elsewhere",
                references: ["Project": "11", "Activity": "1"]))
        return try #require(Int(id))
    }

    /// Returns the current time entry; `nil` if it is deleted.
    func record(_ number: Int, of person: Int) async throws -> SeenRecord? {
        let (email, employee) = Self.people[person]
        return try await backend.readBack(
            "\(number)", of: BackendPerson(email: email, reference: ["employeeNumber": "\(employee)"])
        ).map { SeenRecord($0) }
    }

    // MARK: The poller

    /// Starts a run as if its interval had passed.
    ///
    /// - Parameter isFull: Whether the interval between full comparisons has passed; `nil` for no change.
    mutating func beginRun(isFull: Bool? = nil) throws {
        try acme.connection.run("UPDATE poll.run SET started_at = now() - interval '1 day'")
        if let isFull {
            try acme.connection.run(
                """
                UPDATE poll.run
                SET full_started_at = CASE WHEN \(isFull) THEN now() - interval '10 days' ELSE now() END
                """)
        }
        do {
            #expect(try scheduler.step(now: Timestamp.now()))
        } catch let error as PostgresError where error.isConnectionLost {
            // On a slow machine its session may have timed out; a service restarts it too.
            #expect(try scheduler.step(now: Timestamp.now()))
        }
    }

    /// Returns the pending polls.
    mutating func openPolls() throws -> [UUID] {
        try acme.connection.run(
            """
            SELECT o.id FROM realm.object o LEFT JOIN poll.finished f
                ON f.environment_id = o.environment_id AND f.poll_id = o.id
            WHERE o.kind = 'Poll' AND coalesce(f.run, 0) < (o.fields->>'run')::bigint ORDER BY o.id
            """
        ).map { try $0.value(0) }
    }

    /// Returns the run that a poll was last written for.
    mutating func run(of poll: UUID) throws -> Int64 {
        try acme.connection.run("SELECT (fields->>'run')::bigint FROM realm.object WHERE id = \(poll)")[0].value(0)
    }

    /// Restarts a pending poll with a newer run.
    mutating func overtake(_ poll: UUID) throws {
        let fields = Poll(
            run: try run(of: poll) + 1, person: Poll.changesPerson, dueAt: Timestamp(millisecondsSinceEpoch: 0))
        try acme.put([(poll, String(decoding: try JSONEncoder().encode(fields), as: UTF8.self))], .poll, into: .polls)
    }

    /// Makes a worker's next step with a poll: it calls the back end, or decides and writes the result.
    ///
    /// - Parameter isLost: Whether it crashes between decision and write.
    mutating func step(_ poll: UUID, isLost: Bool = false) async throws {
        let answer = answers.removeValue(forKey: poll)
        let (nexts, batch) = try decide([(poll, answer)])
        if isLost { return }
        let outcome = try batch.commit(on: &acme.connection)
        if !outcome.conflicts.isEmpty {
            // The poll is retried.
            answers[poll] = answer
            return
        }
        try note(outcome.positions)
        guard case .call(let call, _)? = nexts.first else { return }
        let make = try handler.caller(on: &acme.connection, for: acme.id)
        answers[poll] = await make(call)
    }

    private mutating func decide(
        _ polls: [(id: UUID, answer: PollHandler.CallResult?)]
    ) throws -> ([Disposition<PollHandler.Call>], WriteBatch) {
        var batch = WriteBatch(environment: acme.id)
        let inputs = polls.map { poll in
            WorkItem<PollHandler.CallResult>(
                environment: acme.id, subject: EventSubject(realm: .polls, kind: .poll, id: poll.id),
                origin: poll.answer.map { .result($0) } ?? .event, attemptCount: 0)
        }
        let nexts = try handler.decide(inputs, in: acme.id, batch: &batch, on: &acme.connection)
        try #require(nexts.count == polls.count)
        return (nexts, batch)
    }

    /// The unwritten decisions of a second worker that got the same results.
    mutating func prepare(_ polls: [UUID]) throws -> WriteBatch { try decide(polls.map { ($0, answers[$0]) }).1 }

    /// Ends all workers at their current step.
    mutating func crash() throws {
        answers = [:]
        handler = PollHandler(fetcher, logger: Logger(label: "poller"))
    }

    /// Replaces the process, which clears the state of its adapters.
    mutating func restart() throws {
        fetcher = try Self.fetcher(client, entryDays: fetcher.entryDays)
        try crash()
    }

    static func fetcher(_ client: Client, entryDays: Int) throws -> RealmFetcher {
        RealmFetcher(
            BackendRegistry(client: client, secrets: try SecretBox([secretKey]), callMax: patienceMax),
            entryDays: entryDays, aheadDays: 31)
    }

    /// Makes a complete run.
    mutating func completeRun(isFull: Bool) async throws {
        try await finishPolls()
        try beginRun(isFull: isFull)
        try await finishPolls()
    }

    mutating func finishPolls() async throws {
        while true {
            let polls = try openPolls()
            if polls.isEmpty { return }
            for poll in polls { try await step(poll) }
        }
    }

    private mutating func note(_ positions: [ObjectKey: Int64]) throws {
        let keys = positions.keys.filter { $0.kind == .seenRecord }
        let objects = try RealmObject.byKey(try acme.connection.run(RealmObject.load(keys, in: acme.id)))
        for (key, object) in objects {
            let record = try object.decoded(as: SeenRecord.self, by: decoder)
            written[key, default: []].append(record.map { $0.version ?? "none" } ?? "gone")
        }
    }

    // MARK: Stored state

    /// Returns the observations of a person's time entries.
    mutating func seen(of person: Int) throws -> [SeenRecord] { try seen(of: Self.people[person].0) }

    mutating func seen(of email: String) throws -> [SeenRecord] {
        let realm = try acme.realm(try .seen(email))
        let rows = try acme.connection.run(RealmObject.load(kinds: [.seenRecord], realm: realm, in: acme.id))
        return try RealmObject.byKey(rows).values.compactMap { try $0.decoded(as: SeenRecord.self, by: decoder) }
    }

    /// Returns the names in all live objects of a kind.
    mutating func names(of kind: Kind) throws -> Set<String> {
        let rows = try acme.connection.run(
            "SELECT coalesce(fields->>'name', '') FROM realm.object WHERE kind = \(kind.rawValue) AND NOT deleted")
        return Set(try rows.map { try $0.value(0) })
    }

    /// Returns the newest position of all objects except polls.
    mutating func position() throws -> Int64 {
        try acme.connection.run(
            "SELECT coalesce(max(position), 0) FROM realm.object WHERE kind <> 'Poll'")[0].value(0)
    }

    /// Returns the watermark.
    mutating func watermark() throws -> String? {
        let rows = try acme.connection.run("SELECT cursor FROM poll.watermark")
        return rows.count == 1 ? try rows[0].value(0) : nil
    }
}

extension PollerWorld {
    static let organisation = """
        {"employees": [{"number": 7, "name": "Ana"}, {"number": 8, "name": "Bo"}, {"number": 9, "name": "Eva"},
          {"number": 10, "name": "Nobody"}],
         "projects": [{"number": 11, "name": "Piers"}], "activities": [{"number": 1, "name": "Diving",
          "isAccessible": true}]}
        """

    /// Runs `body` with an e-conomic emulator of its own.
    static func run(_ body: @Sendable (inout PollerWorld) async throws -> Void) async throws {
        let emulator = try EconomicEmulator()
        try await withService({ try await emulator.run(onRunning: $0) }) { port in
            var world = try PollerWorld(port: port)
            let client = world.client
            defer { client.shutDown() }
            for (email, number) in people { try world.addPerson(email, number) }
            try await world.post("/sandbox/organisation", organisation)
            try await body(&world)
        }
    }
}

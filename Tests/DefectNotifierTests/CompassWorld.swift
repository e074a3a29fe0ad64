import BackendConnections
import Compass
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

@testable import DefectNotifier
@testable import KeyedWorker
@testable import Sandbox

extension RunningEmulator where System == CompassSystem {
    func change(_ changes: [CompassWorld.Change]) async throws {
        for start in stride(from: 0, to: changes.count, by: 200) {
            let part = Array(changes[start..<min(start + 200, changes.count)])
            try await post("/sandbox/changes", String(decoding: try JSONEncoder().encode(part), as: UTF8.self))
        }
    }

    func setClock(_ time: Timestamp) async throws { try await post("/sandbox/clock", "{\"now\": \"\(time)\"}") }

    var queryCount: Int { system.withState { $0.workspace.queries.count } }
}

/// The notifier's handler with a real database, and a Compass emulator over real HTTP.
struct CompassWorld: ~Copyable {
    static let organisation = CompassOrganisation(
        users: [
            CompassUser(name: "ana", password: "a"), CompassUser(name: "bo", password: "b"),
            CompassUser(name: "fieldpost", password: "secret-of-all", isService: true),
        ])
    static let secretKey = Data((0..<32).map { UInt8($0) }).base64EncodedString()

    /// A change of a record, or a new record if none is named.
    struct Change: Encodable {
        var record: String?
        var user = "bo"
        var action: String?
        var fields: [String: String] = [:]
        var readers: [String]?
    }

    var acme: TestEnvironment
    let compass: RunningEmulator<CompassSystem>
    private var handler: DefectHandler
    private var responses: [UUID: PageResponse] = [:]
    private var run: Int64 = 0

    private init(_ compass: RunningEmulator<CompassSystem>) throws {
        var acme = try TestEnvironment()
        let secrets = try SecretBox([Self.secretKey])
        var tracker = DefectTracker(environment: acme.id)
        (tracker.serverURL, tracker.repository, tracker.database) = (compass.url, "CCMRepo", "SAMPL")
        let secret = try secrets.seal("secret-of-all", at: SecretContext.defectAccount(acme.id))
        tracker.account = .password(user: "fieldpost", sealed: Bytea(secret))
        try acme.connection.run(
            [tracker.save()]
                + DefectLogins.replace(["ana@example.com": "ana", "bo@example.com": "bo"], in: acme.id))
        for email in ["ana@example.com", "bo@example.com"] { _ = try acme.realm(.user(email)) }
        let logger = Logger(label: "notifier")
        handler = DefectHandler(
            TrackerDirectory(
                DefectTrackerRegistry(client: compass.client, secrets: secrets, callMax: patienceMax),
                logger: logger), logger: logger)
        self.compass = compass
        self.acme = acme
    }

    /// Runs `body` with an emulator of its own.
    static func run(_ body: @Sendable (inout CompassWorld) async throws -> Void) async throws {
        let emulator = try CompassEmulator()
        emulator.system.load(organisation)
        try await withEmulator(emulator.system, { try await emulator.run(onRunning: $0) }) { compass in
            var world = try CompassWorld(compass)
            try await body(&world)
        }
    }

    /// - Parameter email: The person whose own login reads; `nil`: the account.
    mutating func startPoll(
        _ scope: DefectPoll.Scope = .changes, of email: String? = nil, at now: Timestamp = Timestamp.now()
    ) throws {
        run += 1
        let id = Scheduler.pollID(of: scope, email)
        responses[id] = nil
        let poll = DefectPoll(run: run, scope: scope, person: email, dueAt: now)
        let json = String(decoding: try JSONEncoder().encode(poll), as: UTF8.self)
        try acme.put([(id, json)], .defectPoll, into: .polls)
    }

    /// Processes a poll until it is finished or deferred.
    ///
    /// - Returns: The last disposition unless the poll is finished.
    mutating func finishPoll(
        _ scope: DefectPoll.Scope = .changes, of email: String? = nil
    ) async throws -> Disposition<PageRequest>? {
        let id = Scheduler.pollID(of: scope, email)
        while true {
            var batch = WriteBatch(environment: acme.id)
            let item = WorkItem<PageResponse>(
                environment: acme.id, subject: EventSubject(realm: .polls, kind: .defectPoll, id: id),
                origin: responses[id].map { .result($0) } ?? .event, attemptCount: 0)
            let disposition = try #require(
                try handler.decide([item], in: acme.id, batch: &batch, on: &acme.connection).first)
            #expect(try batch.commit(on: &acme.connection).conflicts.isEmpty)
            responses[id] = nil
            switch disposition {
            case .call(let request, _):
                let make = try handler.caller(on: &acme.connection, for: acme.id)
                responses[id] = await make(request)
            case .finished: return nil
            case .deferred, .reprocess, .deadLettered: return disposition
            }
        }
    }

    mutating func complete(
        _ scope: DefectPoll.Scope = .changes, of email: String? = nil, at now: Timestamp = Timestamp.now()
    ) async throws {
        try startPoll(scope, of: email, at: now)
        let left = try await finishPoll(scope, of: email)
        #expect(left == nil)
    }

    /// Switches from the account to people's own logins.
    mutating func removeAccount() throws {
        var tracker = try #require(try DefectTracker.load(acme.id, on: &acme.connection))
        tracker.account = nil
        try acme.connection.run(tracker.save())
    }

    /// Returns the texts of all notices, by realm.
    mutating func notices() throws -> [String] {
        try acme.connection.run(
            """
            SELECT r.path || ': ' || (o.fields::json->>'text') FROM store.object o
            JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
            WHERE o.kind = \(Kind.notice) AND NOT o.deleted ORDER BY 1
            """
        ).decode(String.self)
    }

    mutating func mirrorCount() throws -> Int64 {
        try acme.connection.run("SELECT count(*) FROM store.object WHERE kind = \(Kind.defect) AND NOT deleted")[0]
            .decode(Int64.self)
    }
}

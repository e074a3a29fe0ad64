import BackendProtocol
import Backends
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres

/// `backend-poller` with a large company in e-conomic behind it.
struct BenchPolls: Sendable {
    let cluster: LocalCluster
    let pool: Pool
    private let client = Client()
    private let economic: SandboxEconomic
    private let people: [BackendPerson]
    private let environment: EnvironmentID

    /// People polled, or read, at a time.
    private static let inFlight = 8
    private static let runMax = Duration.seconds(900)
    private static let activityCount = 10
    private static let entriesPerRequest = 2_000
    private static let entriesPerDay = 4

    /// - Parameter nodes: Nodes of the tree that everybody has, roots included.
    init(people count: Int, entries: Int, nodes: Int) async throws {
        var options = LocalCluster.Options()
        options.hasEconomic = true
        options.services = [.relay, .poller]
        options.variables = [
            .poller: ["FIELDPOST_WORKER_COUNT": "1", "FIELDPOST_POLLER_INFLIGHT_MAX": "\(Self.inFlight)"]
        ]
        options.database = ["fsync": "on", "shared_buffers": "512MB", "max_wal_size": "4GB"]
        cluster = try await LocalCluster("bench-poll", options)
        pool = try Pool(cluster.conninfo, size: 2)
        economic = SandboxEconomic(client: client, url: cluster.economicURL)
        people = (1...count).map {
            BackendPerson(email: "u\($0)@bench.example", reference: ["employeeNumber": "\($0)"])
        }
        let file = cluster.folder.path + "/people.json"
        try JSONEncoder().encode(people).write(to: URL(filePath: file))
        try await cluster.runCommand([
            "environment", "add", "bench", "--domain", "bench.example", "--issuer", cluster.identityURL, "--audience",
            "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "economic", "--backend-url",
            cluster.economicURL, "--backend-password-variable", LocalCluster.tokensVariable, "--people", file,
            "--poll-interval", "86400",
        ])
        environment = try await pool.run { connection in
            try connection.run("SELECT id FROM realm.environment WHERE name = 'bench'")[0].decode(EnvironmentID.self)
        }
        try await load(entries: entries, nodes: nodes)
    }

    func stop() async {
        pool.stop()
        client.shutDown()
        await cluster.stop()
    }

    // MARK: The company

    private func load(entries: Int, nodes: Int) async throws {
        let projectCount = nodes - 2 - Self.activityCount
        func list(_ count: Int, _ body: (Int) -> String) -> String { (1...count).map(body).joined(separator: ",") }
        try await economic.post(
            "/sandbox/organisation",
            """
            {"employees": [\(list(people.count) { #"{"number": \#($0), "name": "u\#($0)"}"# })],
             "projects": [\(list(projectCount) { #"{"number": \#($0), "name": "Project \#($0)"}"# })],
             "activities": [\(list(Self.activityCount) {
                #"{"number": \#($0), "name": "Activity \#($0)", "isAccessible": true}"#
             })], "projectActivities": []}
            """)
        // Of yesterday: what has just been changed would be told, and read again, beside each comparison.
        try await economic.post("/sandbox/switches", #"{"clockSkewSeconds": -86400}"#)
        let today = Timestamp.now().day
        var rows: [String] = []
        for employee in 1...people.count {
            for number in 0..<entries {
                rows.append(
                    """
                    {"employeeNumber": \(employee), "projectNumber": \((employee + number) % projectCount + 1),
                     "activityNumber": \(number % Self.activityCount + 1), "numberOfHours": 1.5,
                     "text": "work \(number)", "date": "\(today.adding(days: -(number / Self.entriesPerDay)))"}
                    """)
                if rows.count == Self.entriesPerRequest {
                    try await economic.post(&rows, as: "entries", to: "/sandbox/entries/batch")
                }
            }
        }
        try await economic.post(&rows, as: "entries", to: "/sandbox/entries/batch")
        try await economic.post("/sandbox/switches", #"{"clockSkewSeconds": 0}"#)
    }

    func initialise() async throws { try await Self.initialise(people, in: environment, pool) }

    /// Everybody's realm counts as filled, so that everybody is polled from now on.
    static func initialise(_ people: [BackendPerson], in environment: EnvironmentID, _ pool: Pool) async throws {
        try await pool.run { connection in
            var directory = RealmDirectory()
            guard let users = try directory.id(of: .users, in: environment, create: true, on: &connection) else {
                return
            }
            var batch = WriteBatch(environment: environment)
            for person in people {
                let fields = #"{"userId":"\#(person.email)","path":"/users/\#(person.email)","isInitialized":true}"#
                let key = ObjectKey(realm: users, kind: .realms, id: StableID.uuid("realms", person.email))
                batch.put(key, try CanonicalJSON(fields), decision: 0)
            }
            _ = try batch.commit(on: &connection)
        }
    }

    /// What the submitter makes of the records that were seen.
    func storeEntries() async throws {
        let environment = environment
        try await pool.run { connection in
            try connection.runScript(
                """
                BEGIN;
                SET LOCAL statement_timeout = '10min';
                SET LOCAL enable_seqscan = on;
                SET LOCAL enable_nestloop = off;
                INSERT INTO store.object
                    (environment_id, realm_id, kind, id, position, source_position, edit_position, fields, deleted)
                SELECT s.environment_id, o.id, (SELECT number FROM realm.kind WHERE name = 'TimeEntry'), s.id, 1, 1, 0,
                    jsonb_build_object('backendId', s.fields->>'backendId', 'status', s.fields->>'status',
                        'text', s.fields->>'text', 'timeType', 'duration', 'entryDate', s.fields->>'day',
                        'durationSeconds', s.fields->'durationSeconds', 'reporting', jsonb_build_array(
                            jsonb_build_object('context', n.fields->>'parent', 'node', n.id)))::text,
                    false
                FROM realm.object s
                JOIN realm.realm r ON r.environment_id = s.environment_id AND r.id = s.realm_id
                JOIN realm.realm o ON o.environment_id = s.environment_id
                    AND o.path = '/users/' || substr(r.path, length('/seen/') + 1)
                JOIN realm.object n ON n.environment_id = s.environment_id AND n.kind = 'ReportingTreeNode'
                    AND n.fields->>'name' = 'Project ' || (s.fields->'references'->>'Project')
                WHERE s.environment_id = \(environment.rawValue) AND s.kind = 'SeenRecord' AND NOT s.deleted;
                COMMIT;
                """)
            try connection.runScript("VACUUM store.object")
        }
    }

    // MARK: Measuring

    /// A full comparison of everybody, by the service.
    func run() async throws -> Duration {
        let environment = environment
        let last: Int64 = try await pool.run { connection in
            try connection.run(
                """
                UPDATE poll.run SET full_started_at = NULL WHERE environment_id = \(environment.rawValue) RETURNING run
                """
            ).first?.decode(Int64.self) ?? 0
        }
        try await makeDue()
        let start = ContinuousClock.now
        while true {
            let (isSettled, isFull) = try await pool.run { connection in
                try connection.run(
                    """
                    SELECT settled_run = run AND run > \(last), coalesce(full_started_at > '-infinity', false)
                    FROM poll.run WHERE environment_id = \(environment.rawValue)
                    """
                ).first?.decode(Bool.self, Bool.self) ?? (false, false)
            }
            if isSettled, isFull {
                let time = ContinuousClock.now - start
                try await expectAllRead(since: last)
                return time
            }
            // A run of what has changed was decided on before the full one was asked for.
            if isSettled { try await makeDue() }
            guard ContinuousClock.now - start < Self.runMax else {
                throw BenchPlace.Missing(description: "a run did not end within \(Self.runMax)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    private func makeDue() async throws {
        let environment = environment
        try await pool.run { connection in
            _ = try connection.run(
                """
                UPDATE poll.run SET started_at = now() - interval '2 days'
                WHERE environment_id = \(environment.rawValue) AND full_started_at IS NULL
                """)
        }
    }

    private func expectAllRead(since run: Int64) async throws {
        let environment = environment
        let count: Int64 = try await pool.run { connection in
            try connection.run(
                "SELECT count(*) FROM poll.finished WHERE environment_id = \(environment.rawValue) AND run > \(run)"
            )[0].decode(Int64.self)
        }
        // Beside them there may be one of what has changed.
        guard count >= people.count else {
            throw BenchPlace.Missing(description: "\(count) polls were made of \(people.count) people")
        }
    }

    /// The same pages, read and thrown away.
    func read() async throws -> Duration {
        guard let settings = EconomicSettings(baseURL: cluster.economicURL, password: LocalCluster.tokensOfEconomic)
        else {
            throw BenchPlace.Missing(description: "the tokens of e-conomic")
        }
        let backend = EconomicBackend(settings, client: client) { Timestamp.now().day }
        let today = Timestamp.now().day
        let people = people
        let start = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<Self.inFlight {
                group.addTask {
                    for index in stride(from: worker, to: people.count, by: Self.inFlight) {
                        _ = try await backend.reportingData(of: people[index])
                        _ = try await backend.entries(
                            of: people[index], from: today.adding(days: -60), through: today.adding(days: 31))
                    }
                }
            }
            try await group.waitForAll()
        }
        return .now - start
    }

    /// The newest position of all objects but the polls.
    func position() async throws -> Int64 {
        try await pool.run { connection in
            try connection.run("SELECT max(position) FROM realm.object WHERE kind <> 'Poll'")[0].decode(Int64.self)
        }
    }

    func memory() throws -> Double { try Self.memory(cluster) }

    /// The most that the poller has held, in MB.
    static func memory(_ cluster: LocalCluster) throws -> Double {
        guard let kilobytes = cluster.process(.poller).flatMap({ ProcessMemory.kilobytes("VmHWM", of: $0.id) }) else {
            throw BenchPlace.Missing(description: "the poller's memory: it does not run any more")
        }
        return kilobytes / 1_024
    }
}

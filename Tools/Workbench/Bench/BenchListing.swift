import BackendProtocol
import Backends
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres

/// `backend-poller` with a large company in SAP behind it.
struct BenchListing: Sendable {
    /// What a run took.
    struct Run {
        let time: Duration
        let requestCount: Int
    }

    let cluster: LocalCluster
    private let pool: Pool
    private let client = Client()
    private let sap: SandboxSAP
    private let people: [BackendPerson]
    private let environment: EnvironmentID
    private let entryCount: Int

    private static let runMax = Duration.seconds(1_800)
    private static let projectCount = 40
    private static let projectsPerPerson = 2
    private static let entriesPerRequest = 2_000
    private static let entriesPerDay = 4

    init(people count: Int, entries: Int) async throws {
        var options = LocalCluster.Options()
        options.services = [.relay, .poller]
        options.variables = [.poller: ["FIELDPOST_WORKER_COUNT": "1"]]
        options.database = ["fsync": "on", "shared_buffers": "512MB", "max_wal_size": "4GB"]
        cluster = try await LocalCluster("bench-listing", options)
        pool = try Pool(cluster.conninfo, size: 2)
        sap = SandboxSAP(client: client, url: cluster.sapURL)
        entryCount = entries
        people = (1...count).map {
            BackendPerson(
                email: "u\($0)@bench.example",
                reference: [
                    "personWorkAgreementExternalId": "\($0)", "companyCode": "1010",
                    "businessPartnerUuid": Self.guid(1, $0),
                ])
        }
        let file = cluster.folder.path + "/people.json"
        try JSONEncoder().encode(people).write(to: URL(filePath: file))
        try await cluster.runCommand([
            "environment", "add", "bench", "--domain", "bench.example", "--issuer", cluster.identityURL, "--audience",
            "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "sap", "--backend-url",
            cluster.sapURL, "--backend-user", "FIELDPOST", "--backend-password-variable", LocalCluster.passwordVariable,
            "--people", file, "--poll-interval", "86400", "--full-poll-interval", "604800",
        ])
        environment = try await pool.run { connection in
            try connection.run("SELECT id FROM realm.environment WHERE name = 'bench'")[0].decode(EnvironmentID.self)
        }
        try await load()
    }

    func stop() async {
        pool.stop()
        client.shutDown()
        await cluster.stop()
    }

    // MARK: The company

    private static func guid(_ kind: Int, _ number: Int) -> String {
        "00000000-0000-4000-800\(kind)-" + String(String(1_000_000_000_000 + number).suffix(12))
    }

    private func load() async throws {
        func list(_ count: Int, _ body: (Int) -> String) -> String { (1...count).map(body).joined(separator: ",") }
        let projects = list(Self.projectCount) { project in
            let team = (1...people.count).filter { person in
                (0..<Self.projectsPerPerson).contains { (person + $0) % Self.projectCount + 1 == project }
            }
            return """
                {"projectUuid": "\(Self.guid(2, project))", "project": "P\(project)", "description": "Project",
                 "elements": [{"projectElementUuid": "\(Self.guid(3, project))", "projectElement": "P\(project).1",
                 "description": "Work"}], "teamMembers": [\(team.map { "\"\(Self.guid(1, $0))\"" }.joined(
                    separator: ","))]}
                """
        }
        let members = list(people.count) {
            """
            {"personWorkAgreementExternalId": "\($0)", "companyCode": "1010",
             "businessPartnerUuid": "\(Self.guid(1, $0))", "name": "u\($0)"}
            """
        }
        try await sap.post(
            "/sandbox/organisation", #"{"people": [\#(members)], "customers": [], "projects": [\#(projects)]}"#)
        let today = Timestamp.now().day
        var rows: [String] = []
        // In the order in which people write them: day by day.
        for number in (0..<entryCount).reversed() {
            for person in 1...people.count {
                rows.append(
                    """
                    {"person": "\(person)", "companyCode": "1010", "hundredths": 150, "note": "work \(number)",
                     "wbsElement": "P\(person % Self.projectCount + 1).1",
                     "date": "\(today.adding(days: -(number / Self.entriesPerDay)))"}
                    """)
                if rows.count == Self.entriesPerRequest {
                    try await sap.post(&rows, as: "records", to: "/sandbox/records")
                }
            }
        }
        try await sap.post(&rows, as: "records", to: "/sandbox/records")
    }

    func initialise() async throws { try await BenchPolls.initialise(people, in: environment, pool) }

    /// Somebody changes somebody's record in SAP, on one of the days there are.
    ///
    /// - Returns: Its number and its seconds from now on.
    func changeOne(_ round: Int) async throws -> (record: String, seconds: Int) {
        let number = (round * 7_919) % (people.count * entryCount) + 1
        let record = String(String(1_000_000_000_000 + number).suffix(12))
        try await sap.post(
            "/sandbox/records", #"{"records": [{"record": "\#(record)", "hundredths": \#(200 + round)}]}"#)
        return (record, (200 + round) * 36)
    }

    func isSeen(_ change: (record: String, seconds: Int)) async throws -> Bool {
        try await pool.run { connection in
            try connection.run(
                """
                SELECT EXISTS (SELECT FROM realm.object WHERE kind = 'SeenRecord'
                    AND fields->>'backendId' = \(change.record)
                    AND (fields->>'durationSeconds')::bigint = \(Int64(change.seconds)))
                """)[0].decode(Bool.self)
        }
    }

    // MARK: Measuring

    /// A run from its beginning until all of its polls are done.
    func run(isFull: Bool) async throws -> Run {
        let requestsBefore = try await requestCount()
        let start = ContinuousClock.now
        let environment = environment
        let last: Int64 = try await pool.run { connection in
            try connection.run(
                """
                UPDATE poll.run SET started_at = now() - interval '2 days',
                    full_started_at = CASE WHEN \(isFull) THEN NULL ELSE now() END
                WHERE environment_id = \(environment.rawValue) RETURNING run
                """
            ).first?.decode(Int64.self) ?? 0
        }
        while true {
            let isDone: Bool = try await pool.run { connection in
                try connection.run(
                    """
                    SELECT EXISTS (SELECT FROM poll.run
                            WHERE environment_id = \(environment.rawValue) AND run > \(last))
                        AND NOT EXISTS (SELECT FROM realm.object o
                            LEFT JOIN poll.finished f ON f.environment_id = o.environment_id AND f.poll_id = o.id
                            WHERE o.environment_id = \(environment.rawValue) AND o.kind = 'Poll' AND NOT o.deleted
                                AND coalesce(f.run, 0) < (o.fields->>'run')::bigint)
                    """)[0].decode(Bool.self)
            }
            if isDone { break }
            guard ContinuousClock.now - start < Self.runMax else {
                throw BenchPlace.Missing(description: "a run did not end within \(Self.runMax)")
            }
            try await Task.sleep(for: .milliseconds(50))
        }
        return Run(time: .now - start, requestCount: try await requestCount() - requestsBefore)
    }

    /// Requests to SAP's own interfaces, as it counts them.
    private func requestCount() async throws -> Int {
        let response = try await client.send(Request(cluster.sapURL + "/sandbox/stats"))
        return try JSONDecoder().decode([String: Int].self, from: Data(response.body))["requests"] ?? 0
    }
}

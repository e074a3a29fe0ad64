import BackendConnections
import Compass
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres
import Secrets

/// A service of defects with a large tracker behind it.
struct BenchTracker: Sendable {
    let cluster: LocalCluster
    let pool: Pool
    let environment: EnvironmentID
    /// E-mail addresses, which are their logins as well.
    let people: [String]
    private let client = Client()
    private let compass: SandboxCompass

    private static let changesPerRequest = 2_000
    private static let runMax = Duration.seconds(900)
    /// The window is 90 minutes.
    private static let stepSeconds = 6_000
    /// Somebody who owns nothing.
    private static let desk = "desk"

    /// - Parameters:
    ///   - people: All of them own defects and have reported some.
    ///   - defects: So many, which nothing happened to for days.
    ///   - service: What is measured, with one worker.
    ///   - settings: Of it.
    init(
        people count: Int, defects: Int, service: LocalCluster.Part, _ settings: [String: String]
    ) async throws {
        var options = LocalCluster.Options()
        options.hasCompass = true
        options.services = [.relay, service]
        options.variables = [service: settings.merging(["FIELDPOST_WORKER_COUNT": "1"]) { $1 }]
        options.database = ["fsync": "on", "shared_buffers": "512MB", "max_wal_size": "4GB"]
        let cluster = try await LocalCluster("bench-defects", options)
        let pool = try Pool(cluster.conninfo, size: 2)
        let compass = SandboxCompass(client: client, url: cluster.compassURL)
        let people = (1...count).map { "u\($0)@bench.example" }
        (self.cluster, self.pool, self.compass, self.people) = (cluster, pool, compass, people)
        try await Self.load(defects, of: people, into: compass)
        environment = try await Self.makeEnvironment(people, compass, cluster, pool)
    }

    func stop() async {
        pool.stop()
        client.shutDown()
        await cluster.stop()
    }

    private static func load(_ defects: Int, of people: [String], into compass: SandboxCompass) async throws {
        try await compass.load((people + [desk]).map { ($0, $0) })
        let before = Timestamp(millisecondsSinceEpoch: Timestamp.now().millisecondsSinceEpoch - 5 * 86_400_000)
        var changes: [SandboxCompass.Change] = []
        for number in 0..<defects {
            changes.append(
                SandboxCompass.Change(
                    user: people[(number + 1) % people.count], action: "Submit",
                    fields: [
                        "Headline": "Defect \(number)", "Owner": people[number % people.count],
                        "Severity": "2-Major", "Priority": "3-Normal Queue",
                    ], at: before))
            if changes.count == changesPerRequest || number == defects - 1 {
                try await compass.perform(changes)
                changes = []
            }
        }
    }

    private static func makeEnvironment(
        _ people: [String], _ compass: SandboxCompass, _ cluster: LocalCluster, _ pool: Pool
    ) async throws -> EnvironmentID {
        let secrets = try SecretBox([cluster.home.secretKeys])
        let url = compass.url
        return try await pool.run { connection in
            let rows = try connection.run("INSERT INTO realm.environment (name) VALUES ('bench') RETURNING id")
            let environment = try rows[0].decode(EnvironmentID.self)
            var directory = RealmDirectory()
            let realms = try people.map { try RealmPath.user($0) }
            _ = try directory.ids(of: realms, in: environment, create: true, on: &connection)
            var tracker = DefectTracker(environment: environment)
            tracker.serverURL = url
            (tracker.repository, tracker.database) = (SandboxCompass.repository, SandboxCompass.database)
            tracker.account = .password(
                user: SandboxCompass.serviceUser,
                sealed: Bytea(
                    try secrets.seal(SandboxCompass.servicePassword, at: SecretContext.defectAccount(environment))))
            tracker.pollSeconds = DefectTracker.pollSecondsRange.upperBound
            let logins = Dictionary(uniqueKeysWithValues: people.map { ($0, $0) })
            try connection.run(DefectLogins.replace(logins, in: environment) + [tracker.save()])
            return environment
        }
    }

    // MARK: What happens

    /// Somebody changes so many defects, longer after the last time than the window that is always read again.
    func change(_ count: Int, round: Int) async throws {
        try await compass.post("/sandbox/clock", #"{"advanceSeconds": \#(Self.stepSeconds)}"#)
        let severity = "\(round % 4 + 1)-of round \(round)"
        for first in stride(from: 1, through: count, by: Self.changesPerRequest) {
            try await compass.perform(
                (first...min(count, first + Self.changesPerRequest - 1)).map { number in
                    SandboxCompass.Change(
                        record: Self.record(number), user: Self.desk, action: "Modify", fields: ["Severity": severity])
                })
        }
    }

    /// - Parameter number: From 1 on.
    static func record(_ number: Int) -> String { "SAMPL" + String(100_000_000 + number).dropFirst() }

    func setLatency(_ milliseconds: Int) async throws {
        _ = try await compass.setSwitches(#"{"latencyMs":\#(milliseconds)}"#)
    }

    /// Waits for the runs that begin by themselves: everything is read and mirrored for the first time.
    func begin() async throws -> Duration {
        let start = ContinuousClock.now
        for scope in DefectPoll.Scope.allCases { _ = try await wait(for: scope, after: 0) }
        return .now - start
    }

    /// A run of the service, from when its poll is written.
    func run(_ scope: DefectPoll.Scope) async throws -> Duration {
        let environment = environment
        let last: Int64 = try await pool.run { connection in
            try connection.run(
                """
                UPDATE defect.run SET asked_for = true
                WHERE environment_id = \(environment.rawValue) AND scope = \(scope.rawValue) RETURNING run
                """)[0].decode(Int64.self)
        }
        return try await wait(for: scope, after: last)
    }

    private func wait(for scope: DefectPoll.Scope, after last: Int64) async throws -> Duration {
        let environment = environment
        let end = ContinuousClock.now + Self.runMax
        var begun: ContinuousClock.Instant?
        while ContinuousClock.now < end {
            let (run, finished): (Int64, Int64) = try await pool.run { connection in
                try connection.run(
                    """
                    SELECT run, finished_run FROM defect.run
                    WHERE environment_id = \(environment.rawValue) AND scope = \(scope.rawValue)
                    """
                ).first?.decode(Int64.self, Int64.self) ?? (0, 0)
            }
            if run > last, begun == nil { begun = .now }
            if let begun, finished >= run, run > last { return .now - begun }
            try await Task.sleep(for: .milliseconds(2))
        }
        throw BenchPlace.Missing(description: "a run of \(scope.rawValue) did not end within \(Self.runMax)")
    }

    // MARK: The limit

    /// The same pages, read and thrown away by one who has logged in.
    func read(_ scope: DefectPoll.Scope, rowsMin: Int, since time: Timestamp) async throws -> Duration {
        let settings = CompassSettings(
            serverURL: compass.url, repository: SandboxCompass.repository, database: SandboxCompass.database)
        let reader = CompassClient(
            settings, as: .password(user: SandboxCompass.serviceUser, password: SandboxCompass.servicePassword),
            client: client)
        guard let folder = try await reader.folder(at: [Folder.personalQueries]) else {
            throw BenchPlace.Missing(description: "the folder of queries")
        }
        let defect = ["id", "Headline", "State", "Severity", "Priority", "Owner", "Submitter", "Submit_Date"]
        let history = ["history.action_name", "history.action_timestamp", "history.user_name"]
        let (columns, condition) =
            switch scope {
            case .changes: (defect + history, QueryFilter.Condition(history[1], .isAfter, [Self.clock(time)]))
            case .comparison: (defect, QueryFilter.Condition("dbid", .isAfter, ["0"]))
            }
        let start = ContinuousClock.now
        let query = try await reader.create(
            QueryDefinition(
                name: TemporaryQuery.name(at: .now()), folder: folder.id, recordType: settings.recordType,
                columns: columns.map { QueryDefinition.Column($0) }, filter: QueryFilter(.all, [condition])))
        let count = try await reader.rows(of: query).count
        if let id = query.id { try await reader.deleteQuery(id) }
        let time = ContinuousClock.now - start
        guard count >= rowsMin else {
            throw BenchPlace.Missing(description: "\(count) rows were read alone, not \(rowsMin)")
        }
        return time
    }

    /// As the stand-in's clock writes it, which shows UTC unless told otherwise.
    private static func clock(_ time: Timestamp) -> String {
        String(time.description.prefix(19)).replacing("T", with: " ")
    }

    // MARK: Figures

    /// When the stand-in's clock was set on the last time.
    func now() async throws -> Timestamp {
        struct Clock: Decodable { let now: Timestamp }
        let answer = try await compass.send("POST", "/sandbox/clock", Array(#"{"advanceSeconds": 0}"#.utf8))
        return try JSONDecoder().decode(Clock.self, from: Data(answer)).now
    }

    /// All requests that Compass was asked so far.
    func requestCount() async throws -> Int {
        let answer = try await compass.send("GET", "/sandbox/stats", nil)
        return try JSONDecoder().decode([String: Int].self, from: Data(answer))["requests"] ?? 0
    }

    /// The environment's newest position: how much was ever written.
    func position() async throws -> Int64 {
        let environment = environment
        return try await pool.run { connection in
            try connection.run("SELECT position FROM realm.environment WHERE id = \(environment.rawValue)")[0]
                .decode(Int64.self)
        }
    }

    func count(_ kind: Kind) async throws -> Int {
        let environment = environment
        return try await pool.run { connection in
            let rows = try connection.run(
                """
                SELECT count(*) FROM realm.object
                WHERE environment_id = \(environment.rawValue) AND kind = \(kind.rawValue) AND NOT deleted
                """)
            return Int(try rows[0].decode(Int64.self))
        }
    }

    /// The most that the notifier has held, in MB.
    func memory() throws -> Double {
        guard
            let kilobytes = cluster.process(.defectNotifier).flatMap({ ProcessMemory.kilobytes("VmHWM", of: $0.id) })
        else { throw BenchPlace.Missing(description: "the notifier's memory: it does not run any more") }
        return kilobytes / 1_024
    }
}

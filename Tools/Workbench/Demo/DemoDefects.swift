import BackendConnections
import Model
import Postgres
import Secrets

/// The demo's people at their desks, where they work in Compass itself.
struct DemoDefects: Sendable {
    let compass: SandboxCompass
    let pool: Pool
    let environment: EnvironmentID
    /// E-mail addresses, which are their logins as well.
    let people: [String]
    let plan: DefectPlan

    /// Seconds between looks: the shortest there is.
    private static let pollSeconds = DefectTracker.pollSecondsRange.lowerBound
    private static let pollInterval = Duration.milliseconds(500)

    init(_ compass: SandboxCompass, pool: Pool, environment: EnvironmentID, named name: String, people: [String]) {
        self.compass = compass
        self.pool = pool
        self.environment = environment
        self.people = people.map { EmailAddress.lowered($0) }
        plan = DefectPlan(people: self.people, environment: name)
    }

    /// Makes the people users of Compass, and Compass the environment's tracker.
    ///
    /// - Parameter login: Seals the service account's password.
    func prepare(names: [String], _ login: DemoLogin) async throws {
        try await compass.load(zip(people, names).map { ($0, $1) })
        var tracker = DefectTracker(environment: environment)
        tracker.serverURL = compass.url
        (tracker.repository, tracker.database) = (SandboxCompass.repository, SandboxCompass.database)
        tracker.account = .password(
            user: SandboxCompass.serviceUser,
            sealed: try login.seal(SandboxCompass.servicePassword, at: SecretContext.defectAccount(environment)))
        tracker.pollSeconds = Self.pollSeconds
        let logins = Dictionary(people.map { ($0, $0) }) { first, _ in first }
        let (found, environment) = (tracker, environment)
        try await pool.run { connection in
            // A second run continues with the first run's defects.
            if try DefectTracker.load(environment, on: &connection) == nil { try connection.run(found.save()) }
            if try connection.run(DefectLogins.people(in: environment)).count != logins.count {
                try connection.run(DefectLogins.replace(logins, in: environment))
            }
        }
    }

    /// Executes the phases; each begins when all notices of the preceding phase have arrived.
    ///
    /// - Parameter onEach: Called with the number of completed steps.
    func performChanges(_ onEach: @Sendable (Int) -> Void) async throws {
        while try await !isWatched() { try await Task.sleep(for: Self.pollInterval) }
        var before = 0
        for phase in plan.phases {
            let history = try await ownHistory()
            // One that was interrupted has its phases whole, or not at all.
            if history.count < before + phase.count {
                let records = Dictionary(history.map { ($0.headline, $0.record) }) { first, _ in first }
                try await compass.perform(
                    phase.map { step in
                        var step = step
                        step.record = records[step.headline]
                        return step
                    })
            }
            before += phase.count
            while try await noticeCount() < reading().noticeCount { try await Task.sleep(for: Self.pollInterval) }
            onEach(before)
        }
    }

    var stepCount: Int { plan.phases.reduce(0) { $0 + $1.count } }

    func reading() async throws -> DefectReading {
        DefectReading(try await compass.history(), people: Set(people))
    }

    private func ownHistory() async throws -> [SandboxCompass.Line] {
        let headlines = Set(plan.phases.joined().map(\.headline))
        return try await compass.history().filter { headlines.contains($0.headline) }
    }

    /// Whether Compass was polled: earlier changes cause no notices.
    private func isWatched() async throws -> Bool {
        try await pool.number(
            "SELECT count(*) FROM defect.watermark WHERE environment_id = \(environment.rawValue)") > 0
    }

    private func noticeCount() async throws -> Int {
        try await pool.number(
            """
            SELECT count(*) FROM realm.object
            WHERE environment_id = \(environment.rawValue) AND kind = \(Kind.notice.rawValue) AND NOT deleted
                AND starts_with(fields->>'code', 'defect-')
            """)
    }
}

import HTTPClient

/// The control side of the Compass emulator: users, their changes, and the history.
struct SandboxCompass: EmulatorControl {
    static let name = "Compass"
    /// The account that polls an environment's tracker.
    static let (serviceUser, servicePassword) = ("fieldpost", "sandbox")
    static let (repository, database) = ("CCMRepo", "SAMPL")

    let client: Client
    let url: String

    private struct Organisation: Encodable {
        struct User: Encodable { let name, fullName, password: String }

        let users: [User]
        let projects: [String: [String]]
    }

    /// A row of the history as it truly is. `headline` and `isDeleted` are those of the record by now.
    struct Line: Decodable {
        let number: Int
        let record: String
        let action: String
        let user: String
        /// The server's local time.
        let timestamp: String
        let newState: String
        /// The owner afterwards; empty: none.
        let owner: String
        let headline: String
        let isDeleted: Bool
        /// The fields that got another value.
        let changes: [String: String]
    }

    /// Adds people as users with the common password, and a project for their defects.
    func load(_ people: [(login: String, name: String)]) async throws {
        let users = people.map { Organisation.User(name: $0.login, fullName: $0.name, password: DemoLogin.password) }
        let body = Organisation(users: users, projects: [DefectPlan.project: DefectPlan.components])
        try await post("/sandbox/organisation", body)
    }

    func perform(_ steps: [DefectPlan.Step]) async throws { try await post("/sandbox/changes", steps) }

    /// All that was ever done.
    func history() async throws -> [Line] { try await lines(of: "/sandbox/history") }
}

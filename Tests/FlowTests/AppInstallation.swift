import Foundation
import LocalCluster
import TestSupport
import Testing

/// One cluster with an environment that has SAP and Compass, for all tests of the field app. Each person signs in once.
struct SharedAppInstallation: SuiteTrait, TestScoping {
    @TaskLocal static var installation: AppInstallation?

    @concurrent func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable @concurrent () async throws -> Void
    ) async throws {
        var options = LocalCluster.Options.quick
        options.services =
            LocalCluster.Part.entryServices
            + [.onboarding, .taskFanOut, .shareFanOut, .defectNotifier, .defectSubmitter]
        options.emulators.append(.compass)
        options.showcases = [.onboarding, .gateway]
        try await withCluster("app", options) { cluster in
            let installation = AppInstallation(cluster)
            try await installation.prepare()
            do {
                try await Self.$installation.withValue(installation) { try await function() }
            } catch {
                await installation.end()
                throw error
            }
            await installation.end()
        }
    }
}

/// The people of the installation, with a browser for each.
actor AppInstallation {
    enum Role: Int, CaseIterable {
        case manager = 0
        case worker, colleague
    }

    nonisolated let cluster: LocalCluster
    private let organisation = SmallOrganisation(peopleCount: Role.allCases.count, elementsPerProject: 8)
    private var people: [Role: AppPerson] = [:]

    init(_ cluster: LocalCluster) { self.cluster = cluster }

    nonisolated var compass: CompassSide { CompassSide(cluster: cluster) }

    nonisolated func email(of role: Role) -> String { organisation.people[role.rawValue].email }

    func prepare() async throws {
        try await organisation.load(into: cluster, invites: false)
        try await cluster.runCommand([
            "environment", "edit", SmallOrganisation.environment, "--client-id", LocalCluster.clientID,
            "--client-secret-from", LocalCluster.clientSecretVariable,
        ])
        try await compass.post(
            "/sandbox/organisation",
            #"{"users": [{"name": "ana", "password": "secret-of-ana"}, {"name": "bo", "password": "secret-of-bo"}]}"#)
        try await cluster.runCommand([
            "environment", "defects", "add", SmallOrganisation.environment, "--server", cluster.compassURL,
            "--repository", "CCMRepo", "--user-database", "SAMPL", "--user", "fieldpost", "--password-from",
            LocalCluster.passwordVariable, "--poll-interval", "5",
        ])
        let logins = cluster.folder.path + "/logins.json"
        try Data(#"{"\#(email(of: .worker))": "ana"}"#.utf8).write(to: URL(filePath: logins))
        try await cluster.runCommand([
            "environment", "defects", "logins", SmallOrganisation.environment, "--file", logins,
        ])
    }

    /// The person of a role, signed in.
    func person(_ role: Role) async throws -> AppPerson {
        if let person = people[role] { return person }
        let person = try await AppPerson(email(of: role), "\(role)", cluster)
        people[role] = person
        try await person.signIn()
        if role == .manager { try await setRole("manager", of: role) }
        return person
    }

    /// Sets a person's role, as an administrator.
    func setRole(_ name: String, of role: Role) async throws {
        try await cluster.runCommand(["environment", "role", name, email(of: role)])
    }

    func end() async {
        for person in people.values { await person.browser.end() }
    }
}

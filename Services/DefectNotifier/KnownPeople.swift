import BackendConnections
import Model
import ObjectStore
import Postgres

/// People of an environment who have a login in its tracker, and a realm.
struct KnownPeople {
    /// A person.
    struct Person: Equatable, Sendable {
        let email: String
        /// The number of their own realm.
        let realm: Int32
    }

    /// By login name.
    private(set) var byLogin: [String: Person] = [:]

    /// The numbers of their realms, by login name.
    var realms: [String: Int32] { byLogin.mapValues(\.realm) }

    /// Looks up those who own or reported defects.
    init(
        of defects: some Sequence<TrackedDefect>, in environment: EnvironmentID, _ directory: inout RealmDirectory,
        _ connection: inout Connection
    ) throws {
        var logins: Set<String> = []
        for defect in defects { logins.formUnion([defect.owner, defect.submitter].compactMap(\.self)) }
        if logins.isEmpty { return }
        try add(DefectLogins.people(logins.sorted(), in: environment), environment, &directory, &connection)
    }

    /// Looks up everybody.
    init(
        in environment: EnvironmentID, _ directory: inout RealmDirectory, _ connection: inout Connection
    ) throws {
        try add(DefectLogins.people(in: environment), environment, &directory, &connection)
    }

    /// One person alone, whom the tracker calls by these names.
    init(_ person: Person, as logins: some Sequence<String>) {
        for login in logins { byLogin[login] = person }
    }

    private mutating func add(
        _ statement: Statement, _ environment: EnvironmentID, _ directory: inout RealmDirectory,
        _ connection: inout Connection
    ) throws {
        var paths: [(login: String, email: String, path: RealmPath)] = []
        for (login, email) in try connection.run(statement).decode(String.self, String.self) {
            if let path = try? RealmPath.user(email) { paths.append((login, email, path)) }
        }
        // Somebody who was never let in has no realm, and hears nothing.
        let realms = try directory.ids(of: paths.map(\.path), in: environment, create: false, on: &connection)
        for (login, email, path) in paths {
            if let realm = realms[path] { byLogin[login] = Person(email: email, realm: realm) }
        }
    }
}

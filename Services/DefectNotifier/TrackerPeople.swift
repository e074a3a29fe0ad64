import BackendConnections
import Model
import ObjectStore
import Postgres

/// A person with a login in an environment's tracker, and a realm.
struct TrackerPerson: Equatable, Sendable {
    let email: String
    /// The number of their own realm.
    let realm: Int32
}

/// People of an environment with a login in its tracker, and a realm.
struct TrackerPeople {
    /// People by login name.
    private(set) var byLogin: [String: TrackerPerson] = [:]

    /// The numbers of their realms, by login name.
    var realms: [String: Int32] { byLogin.mapValues(\.realm) }

    /// Looks up the owners and submitters of defects.
    init(
        of defects: some Sequence<TrackedDefect>, in environment: EnvironmentID, _ directory: inout RealmDirectory,
        _ connection: inout Connection
    ) throws {
        var logins: Set<String> = []
        for defect in defects { logins.formUnion([defect.owner, defect.submitter].compactMap(\.self)) }
        if logins.isEmpty { return }
        try add(DefectLogins.people(logins.sorted(), in: environment), environment, &directory, &connection)
    }

    /// Looks up all people.
    init(in environment: EnvironmentID, _ directory: inout RealmDirectory, _ connection: inout Connection) throws {
        try add(DefectLogins.people(in: environment), environment, &directory, &connection)
    }

    /// Makes a collection of one person with these login names.
    init(_ person: TrackerPerson, as logins: some Sequence<String>) {
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
        // A person who has never logged in has no realm, and gets no notices.
        let realms = try directory.ids(of: paths.map(\.path), in: environment, create: false, on: &connection)
        for (login, email, path) in paths {
            if let realm = realms[path] { byLogin[login] = TrackerPerson(email: email, realm: realm) }
        }
    }
}

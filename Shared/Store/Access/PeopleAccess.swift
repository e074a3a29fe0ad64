import FoundationEssentials
package import Model
import ObjectStore
package import Postgres
import Tenants

/// What each of an environment's people may open, as the gateway decides it.
package struct PeopleAccess: Sendable {
    /// Somebody, and what decides on what they may open.
    package struct Person: Sendable {
        package let email: String
        /// Whether an account of the identity provider was bound to the address: else nobody has come in with it.
        package let hasLoggedIn: Bool
        package let state: AccessState
    }

    /// People who are read at a time.
    private static let pageCount = 100

    private let environment: EnvironmentID
    private let named: [RealmPath]
    private var directory = RealmDirectory()

    /// - Parameter realm: A realm to look at beside those that people's objects name.
    package init(_ environment: EnvironmentID, realm: RealmPath) {
        self.environment = environment
        named = [realm]
    }

    /// Those with this address; none when they were neither invited nor have come in.
    package mutating func person(_ email: String, on connection: inout Connection) throws -> Person? {
        try people(
            connection.run(
                """
                SELECT id, email, object_id, subject IS NOT NULL FROM access.person
                WHERE environment_id = \(environment.rawValue) AND email = \(email)
                """), on: &connection
        ).first
    }

    /// The next people by their addresses; none when there are no more.
    package mutating func page(after email: String, on connection: inout Connection) throws -> [Person] {
        try people(
            connection.run(
                """
                SELECT id, email, object_id, subject IS NOT NULL FROM access.person
                WHERE environment_id = \(environment.rawValue) AND email > \(email)
                ORDER BY email LIMIT \(Int64(Self.pageCount))
                """), on: &connection)
    }

    /// - Parameter rows: id, e-mail address, id of the `Person` object, whether they have logged in.
    private mutating func people(_ rows: Rows, on connection: inout Connection) throws -> [Person] {
        let found = try rows.decode(Int32.self, String.self, UUID.self, Bool.self).compactMap {
            id, email, object, isIn in
            (try? RealmPath.user(email)).map { own in
                let identity = Caller.Identity.person(email: email, realm: own, object: object)
                return (caller: Caller(environment: environment, id: id, identity: identity), own: own, isIn: isIn)
            }
        }
        let paths = [.common] + found.map(\.own)
        let numbers = try directory.ids(of: paths, in: environment, create: false, on: &connection)
        // A realm that is not there has no number, and no number is 0.
        let statements = found.flatMap { person in
            AccessState.load(
                person.caller, own: numbers[person.own] ?? 0, common: numbers[.common] ?? 0, named: named)
        }
        let answers = try connection.run(statements)
        return try found.enumerated().map { index, person in
            Person(
                email: person.caller.name, hasLoggedIn: person.isIn,
                state: try AccessState(person.caller, named: named, [answers[index * 2], answers[index * 2 + 1]]))
        }
    }
}

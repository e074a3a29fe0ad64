import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

/// The realms that each person of an environment may open, by the same rules as the gateway.
package struct PeopleAccess: Sendable {
    /// A person and their access.
    package struct Person: Sendable {
        package let email: String
        /// Whether an account of the identity provider is bound to the address, that is, the person has logged in.
        package let hasLoggedIn: Bool
        package let state: AccessState
    }

    /// The number of people per page.
    private static let pageCount = 100

    private let environment: EnvironmentID
    private let named: [RealmPath]
    private var directory = RealmDirectory()

    /// - Parameter realm: A realm to evaluate in addition to those that people's objects refer to.
    package init(_ environment: EnvironmentID, realm: RealmPath) {
        self.environment = environment
        named = [realm]
    }

    /// Returns the person with this address; `nil` if they were neither invited nor have logged in.
    package mutating func person(_ email: String, on connection: inout Connection) throws -> Person? {
        try people(selectedBy: "email = \(email)", on: &connection).first
    }

    /// Returns the next page of people, sorted by address; empty at the end.
    package mutating func page(after email: String, on connection: inout Connection) throws -> [Person] {
        try people(selectedBy: "email > \(email) ORDER BY email LIMIT \(Int64(Self.pageCount))", on: &connection)
    }

    private mutating func people(selectedBy clauses: Statement, on connection: inout Connection) throws -> [Person] {
        let rows = try connection.run(
            """
            SELECT id, email, object_id, subject IS NOT NULL FROM access.person
            WHERE environment_id = \(environment.rawValue) AND \(clauses)
            """)
        let people = try rows.decode(Int32.self, String.self, UUID.self, Bool.self).compactMap {
            id, email, object, hasLoggedIn in
            (try? RealmPath.user(email)).map { own in
                let person = BoundPerson(environment: environment, id: id, email: email, realm: own, object: object)
                return (caller: Caller.person(person), own: own, hasLoggedIn: hasLoggedIn)
            }
        }
        let paths = [.common] + people.map(\.own)
        let numbers = try directory.ids(of: paths, in: environment, create: false, on: &connection)
        // Realm numbers begin at 1: 0 selects nothing.
        let statements = people.flatMap { person in
            AccessState.load(
                person.caller, own: numbers[person.own] ?? 0, common: numbers[.common] ?? 0, named: named)
        }
        let results = try connection.run(statements)
        return try people.enumerated().map { index, person in
            Person(
                email: person.caller.name, hasLoggedIn: person.hasLoggedIn,
                state: try AccessState(person.caller, named: named, [results[index * 2], results[index * 2 + 1]]))
        }
    }
}

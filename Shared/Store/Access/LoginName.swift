import Essentials
import FoundationEssentials
import Model
import ObjectStore
package import Postgres
package import Tenants

/// The display name from a person's login, used until another name is written.
package enum LoginName {
    private static let lengthMax = 100
    private static let attemptsMax = 3

    /// Returns an identity's name without control characters, at most 100 Unicode scalars; `nil` if it has none.
    package static func of(_ identity: Identity) -> String? {
        let given = (identity.name ?? "").unicodeScalars
        var name = String.UnicodeScalarView()
        name.append(contentsOf: given.filter { $0.properties.generalCategory != .control })
        let collapsed = String(name).split(separator: " ").joined(separator: " ")
        return DisplayName.isVisible(collapsed) ? collapsed.prefix(scalars: lengthMax) : nil
    }

    /// Copies the name of a login into the person's `Person` and `User` objects if they have no name or the one of the
    /// previous login: names written by a person or an integration stay.
    package static func apply(_ identity: Identity, of person: BoundPerson, on connection: inout Connection) throws {
        guard let name = of(identity) else { return }
        for _ in 0..<attemptsMax {
            if try apply(name, of: person, on: &connection) { return }
        }
    }

    /// - Returns: `false` if an object was changed concurrently.
    private static func apply(_ name: String, of person: BoundPerson, on connection: inout Connection) throws -> Bool {
        let former = try connection.run("SELECT name FROM access.person WHERE id = \(person.id)")
            .first?.decode(String?.self)
        var directory = RealmDirectory()
        let realms = try directory.ids(
            of: [.common, person.realm], in: person.environment, create: false, on: &connection)
        var batch = WriteBatch(environment: person.environment)
        let decoder = JSONDecoder()
        let unnamed: Set = ["", People.defaultName(of: person.email), (former ?? nil) ?? ""]
        let fields = try CanonicalJSON(encoding: ["name": name])
        func write(_ object: RealmObject, _ current: String?) throws {
            guard let current, current != name, unnamed.contains(current) else { return }
            try batch.patch(object, fields, decision: 0)
        }
        if let common = realms[.common] {
            let key = ObjectKey(realm: common, kind: .person, id: person.object)
            let rows = try connection.run(RealmObject.load([key], in: person.environment))
            if let object = try RealmObject.byKey(rows)[key] {
                try write(object, try? object.decoded(as: Person.self, by: decoder)?.name)
            }
        }
        if let own = realms[person.realm] {
            let rows = try connection.run(RealmObject.load(kinds: [.user], realm: own, in: person.environment))
            for object in try RealmObject.byKey(rows).values {
                try write(object, try? object.decoded(as: User.self, by: decoder)?.name)
            }
        }
        batch.append(
            """
            UPDATE access.person SET name = \(name)
            WHERE id = \(person.id) AND name IS DISTINCT FROM \(name) AND 0 <> ALL ((SELECT realm.missed())::int[])
            """)
        return try batch.commit(on: &connection).conflicts.isEmpty
    }
}

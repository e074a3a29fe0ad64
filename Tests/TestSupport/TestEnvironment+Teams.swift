import Essentials
package import FoundationEssentials
package import Model
import ObjectStore
import Postgres

/// Creates people and teams as managers and the server do.
extension TestEnvironment {
    /// Grants access to a person with this id and the address `NAME@example.com`.
    package mutating func letIn(_ name: String, _ person: UUID) throws {
        let email = "\(name)@example.com"
        try connection.run(
            "INSERT INTO access.person (environment_id, email, object_id) VALUES (\(id.rawValue), \(email), \(person))")
        try put([(person, "{\"name\":\"\(name)\"}")], .person, into: .common)
    }

    /// Creates a team, or restores the object of a deleted team.
    package mutating func makeTeam(_ team: UUID = UUID(), members: [UUID] = []) throws -> UUID {
        try put([(team, #"{"name":"team"}"#)], .team, into: .common)
        for person in members { try add(person, to: team) }
        return team
    }

    /// Adds the person to the team.
    package mutating func add(_ person: UUID, to team: UUID) throws {
        let fields = "{\"person\":\"\(person.text)\",\"team\":\"\(team.text)\"}"
        try put([(Membership.id(of: person, in: team), fields)], .membership, into: .common)
    }

    /// Removes the person from the team.
    package mutating func remove(_ person: UUID, from team: UUID) throws {
        try delete(.membership, Membership.id(of: person, in: team), in: .common)
    }

    /// Deletes an object as a device does.
    package mutating func delete(_ kind: Kind, _ object: UUID, in path: RealmPath) throws {
        var batch = WriteBatch(environment: id)
        batch.delete(ObjectKey(realm: try realm(path), kind: kind, id: object), decision: 0, isEdit: true)
        _ = try batch.commit(on: &connection)
    }
}

import Essentials
package import FoundationEssentials
package import Model
import ObjectStore
import Postgres

/// People and teams, as managers and the server make them.
extension TestEnvironment {
    /// Lets a person in, under this id, with `NAME@example.com`.
    package mutating func letIn(_ name: String, _ person: UUID) throws {
        let email = "\(name)@example.com"
        try connection.run(
            "INSERT INTO access.person (environment_id, email, object_id) VALUES (\(id.rawValue), \(email), \(person))")
        try put([(person, "{\"name\":\"\(name)\"}")], .person, into: .common)
    }

    /// Makes a team, or gives one that went its object again.
    package mutating func makeTeam(_ team: UUID = UUID(), members: [UUID] = []) throws -> UUID {
        try put([(team, #"{"name":"team"}"#)], .team, into: .common)
        for person in members { try add(person, to: team) }
        return team
    }

    /// The person is in the team from now on.
    package mutating func add(_ person: UUID, to team: UUID) throws {
        let fields = "{\"person\":\"\(person.text)\",\"team\":\"\(team.text)\"}"
        try put([(Membership.id(of: person, in: team), fields)], .membership, into: .common)
    }

    /// The person is in the team no longer.
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

import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LocationFanOut

/// A copy, or a position: whose, and where.
struct Place: Hashable, CustomStringConvertible {
    let realm: RealmPath
    let person: UUID

    var description: String { "\(realm) \(person.text)" }
}

/// An environment with people and teams, and the handler that keeps copies of their positions.
struct LocationWorld: ~Copyable {
    var acme: TestEnvironment
    private var fanOut = Settling(LocationHandler(), of: Services.locationFanOut)
    private var emails: [UUID: String] = [:]

    init() throws { acme = try TestEnvironment() }

    // MARK: What people do

    /// - Parameter id: The person's, where it is not left to chance.
    mutating func person(_ name: String, _ id: UUID = UUID()) throws -> UUID {
        try acme.letIn(name, id)
        emails[id] = "\(name)@example.com"
        return id
    }

    /// The person tells a position.
    mutating func tell(_ person: UUID, _ latitude: Double) throws {
        try put(.location, person, #"{"latitude":\#(latitude),"longitude":10.5}"#, in: try own(person))
    }

    mutating func stopTelling(_ person: UUID) throws { try acme.delete(.location, person, in: try own(person)) }

    func own(_ person: UUID) throws -> RealmPath { try .user(try #require(emails[person])) }

    mutating func put(_ kind: Kind, _ id: UUID, _ fields: String, in path: RealmPath) throws {
        try acme.put([(id, fields)], kind, into: path)
    }

    // MARK: What follows

    var dead: [EventSubject: String] { fanOut.dead }
    var missedCount: Int { fanOut.missedCount }

    /// - Parameter meanwhile: Runs between the next load and its commit.
    mutating func settle(meanwhile: ((inout Connection) throws -> Void)? = nil) throws {
        fanOut.meanwhile = meanwhile
        try fanOut.settle(in: acme.id, on: &acme.connection)
        try expectWhatIsNaive()
    }

    /// - Returns: How many positions were used.
    mutating func settleAgain() throws -> Int64 {
        let before = try position()
        fanOut.republish()
        try settle()
        return try position() - before
    }

    mutating func position() throws -> Int64 {
        try acme.connection.run("SELECT position FROM realm.environment WHERE id = \(acme.id.rawValue)")[0].value(0)
    }

    /// Where copies of somebody's position are.
    mutating func places(of person: UUID) throws -> Set<RealmPath> {
        Set(try Naive(in: acme.id, on: &acme.connection).copies.keys.filter { $0.person == person }.map(\.realm))
    }

    /// Exactly the copies are there that a naive reading of all objects says.
    mutating func expectWhatIsNaive() throws {
        let naive = try Naive(in: acme.id, on: &acme.connection)
        #expect(naive.copies == naive.expected)
    }
}

/// All that is there, and the copies that should be, by a look at every object.
struct Naive {
    private(set) var copies: [Place: String] = [:]
    private(set) var expected: [Place: String] = [:]

    init(in environment: EnvironmentID, on connection: inout Connection) throws {
        let rows = try connection.run(
            """
            SELECT r.path, o.kind, o.id, o.fields
            FROM store.object o JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
            WHERE o.environment_id = \(environment.rawValue) AND NOT o.deleted
            """)
        var (people, teams): (Set<UUID>, Set<UUID>) = ([], [])
        var (memberships, positions): ([Membership], [Place: String]) = ([], [:])
        for (path, kind, id, fields) in try rows.decode(String.self, Kind.self, UUID.self, String.self) {
            let realm = try #require(RealmPath(path))
            switch (realm.realmClass, kind) {
            case (.user, .location) where kind.objection(to: Array(fields.utf8)) == nil:
                positions[Place(realm: realm, person: id)] = fields
            case (.manager, .location), (.team, .location): copies[Place(realm: realm, person: id)] = fields
            case (.common, .person): people.insert(id)
            case (.common, .team): teams.insert(id)
            case (.common, .membership):
                guard let found = try? JSONDecoder().decode(Membership.self, from: Data(fields.utf8)),
                    Membership.id(of: found.person, in: found.team) == id
                else { continue }
                memberships.append(found)
            default: break
            }
        }
        let own = try connection.run(
            "SELECT email, object_id FROM access.person WHERE environment_id = \(environment.rawValue)")
        for (email, person) in try own.decode(String.self, UUID.self) where people.contains(person) {
            guard let position = positions[Place(realm: try .user(email), person: person)] else { continue }
            expected[Place(realm: .manager, person: person)] = position
            for membership in memberships where membership.person == person && teams.contains(membership.team) {
                expected[Place(realm: .team(membership.team), person: person)] = position
            }
        }
    }
}

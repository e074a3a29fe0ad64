import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import LocationFanOut

/// The realm and the person of a copy or a location.
struct CopyKey: Hashable, CustomStringConvertible {
    let realm: RealmPath
    let person: UUID

    var description: String { "\(realm) \(person.text)" }
}

/// An environment with people and teams, and the handler that maintains copies of their locations.
struct LocationWorld: ~Copyable {
    var acme: TestEnvironment
    private var fanOut = Settling(LocationHandler(), of: Services.locationFanOut)
    private var emails: [UUID: String] = [:]

    init() throws { acme = try TestEnvironment() }

    // MARK: People

    /// - Parameter id: The person's id; random by default.
    mutating func person(_ name: String, _ id: UUID = UUID()) throws -> UUID {
        try acme.letIn(name, id)
        emails[id] = "\(name)@example.com"
        return id
    }

    /// Writes the person's location.
    mutating func report(_ person: UUID, _ latitude: Double) throws {
        try put(.location, person, #"{"latitude":\#(latitude),"longitude":10.5}"#, in: try own(person))
    }

    mutating func stopReporting(_ person: UUID) throws { try acme.delete(.location, person, in: try own(person)) }

    func own(_ person: UUID) throws -> RealmPath { try .user(try #require(emails[person])) }

    mutating func put(_ kind: Kind, _ id: UUID, _ fields: String, in path: RealmPath) throws {
        try acme.put([(id, fields)], kind, into: path)
    }

    // MARK: Results

    var dead: [EventSubject: String] { fanOut.dead }
    var missedCount: Int { fanOut.missedCount }

    /// - Parameter meanwhile: Runs between the next load and its commit.
    mutating func settle(meanwhile: ((inout Connection) throws -> Void)? = nil) throws {
        fanOut.meanwhile = meanwhile
        try fanOut.settle(in: acme.id, on: &acme.connection)
        try expectReferenceCopies()
    }

    /// - Returns: The number of positions used.
    mutating func settleRepublished() throws -> Int64 {
        let before = try position()
        fanOut.republish()
        try settle()
        return try position() - before
    }

    mutating func position() throws -> Int64 {
        try acme.connection.run("SELECT position FROM realm.environment WHERE id = \(acme.id.rawValue)")[0].value(0)
    }

    /// Returns the realms with copies of a person's location.
    mutating func paths(of person: UUID) throws -> Set<RealmPath> {
        Set(
            try ReferenceCopies(in: acme.id, on: &acme.connection).copies.keys.filter { $0.person == person }.map(
                \.realm))
    }

    /// Checks that exactly the copies computed from all objects exist.
    mutating func expectReferenceCopies() throws {
        let reference = try ReferenceCopies(in: acme.id, on: &acme.connection)
        #expect(reference.copies == reference.expected)
    }
}

/// The existing copies, and the expected ones computed from all objects.
struct ReferenceCopies {
    private(set) var copies: [CopyKey: String] = [:]
    private(set) var expected: [CopyKey: String] = [:]

    init(in environment: EnvironmentID, on connection: inout Connection) throws {
        let rows = try connection.run(
            """
            SELECT r.path, o.kind, o.id, o.fields
            FROM store.object o JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
            WHERE o.environment_id = \(environment.rawValue) AND NOT o.deleted
            """)
        var (people, teams): (Set<UUID>, Set<UUID>) = ([], [])
        var (memberships, positions): ([Membership], [CopyKey: String]) = ([], [:])
        for (path, kind, id, fields) in try rows.decode(String.self, Kind.self, UUID.self, String.self) {
            let realm = try #require(RealmPath(path))
            switch (realm.realmClass, kind) {
            case (.user, .location) where kind.objection(to: Array(fields.utf8)) == nil:
                positions[CopyKey(realm: realm, person: id)] = fields
            case (.manager, .location), (.team, .location): copies[CopyKey(realm: realm, person: id)] = fields
            case (.common, .person): people.insert(id)
            case (.common, .team): teams.insert(id)
            case (.common, .membership):
                guard let membership = try? JSONDecoder().decode(Membership.self, from: Data(fields.utf8)),
                    Membership.id(of: membership.person, in: membership.team) == id
                else { continue }
                memberships.append(membership)
            default: break
            }
        }
        let own = try connection.run(
            "SELECT email, object_id FROM access.person WHERE environment_id = \(environment.rawValue)")
        for (email, person) in try own.decode(String.self, UUID.self) where people.contains(person) {
            guard let position = positions[CopyKey(realm: try .user(email), person: person)] else { continue }
            expected[CopyKey(realm: .manager, person: person)] = position
            for membership in memberships where membership.person == person && teams.contains(membership.team) {
                expected[CopyKey(realm: .team(membership.team), person: person)] = position
            }
        }
    }
}

import Foundation
import Model
import Postgres
import Realms
import Testing

@testable import RealmGateway

/// Realms of every class, callers of every role, and each of them in every relation that there is.
struct PermissionPlaces: Sendable {
    struct Caller: Sendable {
        let name: String
        let device: GatewayDevice
        /// The id of the `Person` object; an integration has none.
        let person: UUID?
        let standing: Standing
    }

    struct Stored: Sendable {
        let kind: Kind
        let id: UUID
        let fields: String
    }

    struct Place: Sendable {
        let path: RealmPath
        /// By the caller's name; who is not there is a stranger.
        var relations: [String: Relation] = [:]
        var stored: [Stored] = []

        /// Puts back what a caller deleted.
        func restore(_ fixture: GatewayFixture) throws {
            let realm = try fixture.realm(path)
            try fixture.write { batch in
                for object in stored {
                    let key = ObjectKey(realm: realm, kind: object.kind, id: object.id)
                    batch.put(key, JSONBytes(object.fields), decision: 0)
                }
            }
        }

        /// One that is new, those that are there, and the caller's own.
        func objects(_ kind: Kind, _ caller: Caller) -> [(id: UUID, isNew: Bool)] {
            let there = stored.filter { $0.kind == kind }.map(\.id)
            let own = caller.person.map { there.contains($0) ? [] : [($0, true)] } ?? []
            return [(UUID(), true)] + there.map { ($0, false) } + own
        }
    }

    private(set) var callers: [Caller] = []
    private(set) var places: [Place] = []

    private static let people: [(name: String, role: Role)] = [
        ("worker", .worker), ("manager", .manager), ("admin", .admin),
    ]

    init(_ fixture: GatewayFixture) async throws {
        for (name, role) in Self.people {
            let device = try await fixture.device("\(name)@example.com", role: role)
            callers.append(
                Caller(
                    name: name, device: device, person: try fixture.person("\(name)@example.com"),
                    standing: .person(role)))
        }
        _ = try await fixture.device("other@example.com")
        let other = try fixture.person("other@example.com")
        places = [Place(path: .users, stored: [Self.realms()])]
        for caller in callers { try addOwn(caller) }
        places += [try Self.system, Place(path: .manager, stored: [Self.task(), Self.location()])]
        addCommon(other)
        places.append(Place(path: .catalogue(UUID()), stored: [Self.node()]))
        try addTeam(of: other, nil, fixture)
        for caller in callers { try addTeam(of: try #require(caller.person), caller.name, fixture) }
        for (owner, recipient) in [("worker", "manager"), ("manager", "admin"), ("admin", "worker"), ("", "")] {
            try addShare(owner, recipient, other)
        }
        // A reference alone opens nothing: what the share's own realm says counts.
        let foreign = try #require(places.last?.path.description.split(separator: "/").last)
        try fixture.put(
            .share, try #require(UUID(uuidString: String(foreign))), "{}", in: try .user("worker@example.com"))
        for place in places { try place.restore(fixture) }
        // Last, because it may delete what the others stand by.
        let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
        callers.append(Caller(name: "books", device: books, person: nil, standing: .integration))
    }

    private func person(_ name: String) -> UUID? { callers.first { $0.name == name }?.person }

    private static func realms() -> Stored {
        Stored(kind: .realms, id: UUID(), fields: "{\"userId\":\"x\",\"path\":\"/users/x\"}")
    }
    private static func task() -> Stored { Stored(kind: .fieldTask, id: UUID(), fields: "{\"title\":\"t\"}") }
    private static func location(_ id: UUID = UUID()) -> Stored { Stored(kind: .location, id: id, fields: "{}") }
    private static func node() -> Stored { Stored(kind: .reportingTreeNode, id: UUID(), fields: "{\"name\":\"n\"}") }
    private static var system: Place {
        get throws { Place(path: try #require(RealmPath("/polls")), stored: [task()]) }
    }

    /// A person's own realm, and the catalogue that it refers to.
    private mutating func addOwn(_ caller: Caller) throws {
        let (catalogue, email) = (UUID(), "\(caller.name)@example.com")
        let user = "{\"email\":\"\(email)\",\"name\":\"N\",\"catalogue\":\"\(catalogue.text)\"}"
        places.append(
            Place(
                path: try .user(email), relations: [caller.name: .owner],
                stored: [
                    Stored(kind: .user, id: UUID(), fields: user),
                    Stored(kind: .timeEntry, id: UUID(), fields: "{\"status\":\"draft\"}"),
                    Stored(kind: .timeEntryStatus, id: UUID(), fields: "{}"),
                    Stored(kind: .reportingContext, id: UUID(), fields: "{}"),
                    Stored(kind: .reportingTemplate, id: UUID(), fields: "{}"),
                    Self.task(), Self.location(), Self.location(try #require(caller.person)),
                ]))
        places.append(
            Place(path: .catalogue(catalogue), relations: [caller.name: .referrer], stored: [Self.node()]))
    }

    /// What nobody's permission is read from, and what people tell of themselves.
    private mutating func addCommon(_ other: UUID) {
        let team = UUID()
        var stored = [
            Stored(kind: .person, id: other, fields: "{\"name\":\"O\",\"role\":\"worker\"}"),
            Stored(kind: .personLookup, id: other, fields: "{\"name\":\"O\",\"email\":\"other@example.com\"}"),
            Stored(kind: .team, id: team, fields: "{\"name\":\"t\"}"),
            Stored(
                kind: .membership, id: Membership.id(of: other, in: team),
                fields: "{\"person\":\"\(other.text)\",\"team\":\"\(team.text)\"}"),
        ]
        for caller in callers {
            guard let id = caller.person else { continue }
            let lookup = "{\"name\":\"N\",\"email\":\"\(caller.name)@example.com\"}"
            stored.append(Stored(kind: .personLookup, id: id, fields: lookup))
        }
        places.append(Place(path: .common, stored: stored))
    }

    private mutating func addTeam(of member: UUID, _ name: String?, _ fixture: GatewayFixture) throws {
        let team = UUID()
        try fixture.makeTeam(team, members: [member])
        places.append(
            Place(
                path: .team(team), relations: name.map { [$0: .member] } ?? [:],
                stored: [Self.task(), Self.location()]))
    }

    private mutating func addShare(_ owner: String, _ recipient: String, _ other: UUID) throws {
        let id = UUID()
        let fields =
            "{\"owner\":\"\((person(owner) ?? other).text)\",\"recipient\":\"\((person(recipient) ?? other).text)\"}"
        var relations: [String: Relation] = [:]
        if person(owner) != nil { relations[owner] = .owner }
        if person(recipient) != nil { relations[recipient] = .recipient }
        places.append(
            Place(
                path: .share(id), relations: relations,
                stored: [Stored(kind: .share, id: id, fields: fields)]))
        for index in places.indices where places[index].relations.values.contains(.owner) {
            guard places[index].path.realmClass == .user else { continue }
            let isParty = places[index].relations.keys.contains { $0 == owner || $0 == recipient }
            if isParty { places[index].stored.append(Stored(kind: .share, id: id, fields: fields)) }
        }
    }
}

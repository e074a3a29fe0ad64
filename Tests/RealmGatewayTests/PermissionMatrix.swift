import Access
import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import Testing

@testable import RealmGateway

/// Realms of every class, callers of every role, in every relation.
struct PermissionMatrix: Sendable {
    struct Caller: Sendable {
        let name: String
        let device: GatewayDevice
        /// The id of the `Person` object; an integration has none.
        let person: UUID?
        let standing: AccessPrincipal
    }

    /// An object to write.
    struct Target: Sendable {
        let kind: Kind
        let id: UUID
        /// A valid value of each field.
        let values: [String: String]
        /// The initial role of a `Person`.
        var role = Role.worker
        /// The initial fields, in addition to the required ones.
        var also: [String] = []

        init(_ kind: Kind, _ id: UUID = UUID(), _ own: [String: String] = [:]) {
            self.kind = kind
            self.id = id
            // Team names are unique.
            let name = kind == .team ? ["name": "\"\(id.text)\""] : [:]
            values = PermissionBodies.values(kind, own.merging(name) { own, _ in own })
        }

        /// Creates an object whose id is derived from others.
        init(_ kind: Kind, _ pair: (id: UUID, own: [String: String])) { self.init(kind, pair.id, pair.own) }

        /// Whether permissions for own objects apply.
        func isOwn(_ caller: Caller) -> Bool {
            guard kind == .taskNote else { return id == caller.person }
            return values["author"] == caller.person.map { "\"\($0.text)\"" }
        }

        /// The initial fields.
        var fields: String {
            let role = kind == .person ? ["role": "\"\(role.rawValue)\""] : [:]
            let values = values.merging(role) { _, role in role }
            return PermissionBodies.json(PermissionBodies.required(kind) + also + role.keys, values)
        }
    }

    struct RealmCase: Sendable {
        let path: RealmPath
        /// By the caller's name; a caller without an entry has no relation.
        var relations: [String: Relation] = [:]
        var stored: [Target] = []

        /// Restores the objects that a caller changed or deleted.
        func restore(_ fixture: GatewayFixture) throws {
            let realm = try fixture.realm(path)
            try fixture.write { batch in
                for object in stored {
                    let key = ObjectKey(realm: realm, kind: object.kind, id: object.id)
                    batch.put(key, try CanonicalJSON(object.fields), decision: 0)
                }
            }
        }
    }

    /// Returns a new object, the existing ones, and the caller's own. `stored` lists the existing ones.
    func targets(_ kind: Kind, _ caller: Caller, in realmCase: RealmCase) -> [Target] {
        let there = realmCase.stored.filter { $0.kind == kind }
        let own = caller.person.flatMap { id in there.contains { $0.id == id } ? nil : id }
        return [new(kind, nil, caller)] + there + (own.map { [new(kind, $0, caller)] } ?? [])
    }

    private func new(_ kind: Kind, _ id: UUID?, _ caller: Caller) -> Target {
        switch kind {
        // With the person's own id, both parts of a membership's id are the person's.
        case .membership: Target(.membership, PermissionBodies.membership(id ?? third, id ?? team))
        case .personLookup: Target(.personLookup, id ?? third)
        case .sharedItem: Target(.sharedItem, PermissionBodies.sharedItem(id ?? UUID(), other))
        case .share: Target(.share, id ?? UUID(), PermissionBodies.share(caller.person ?? third, other))
        case .taskNote:
            Target(
                .taskNote, id ?? UUID(),
                ["task": "\"\(task.text)\"", "author": "\"\((caller.person ?? third).text)\""])
        default: Target(kind, id ?? UUID())
        }
    }

    private(set) var callers: [Caller] = []
    private(set) var realmCases: [RealmCase] = []
    /// Two people who send no requests.
    private let other: UUID
    private let third: UUID
    /// A team that memberships refer to.
    private let team = UUID()
    /// A task in each realm with tasks, to which notes refer.
    private let task = UUID()

    private static let people: [(name: String, role: Role)] = [
        ("worker", .worker), ("manager", .manager), ("admin", .admin),
    ]

    init(_ fixture: GatewayFixture) async throws {
        for name in ["other", "third"] { _ = try await fixture.device("\(name)@example.com") }
        (other, third) = (try fixture.person("other@example.com"), try fixture.person("third@example.com"))
        for (name, role) in Self.people {
            let device = try await fixture.device("\(name)@example.com", role: role)
            callers.append(
                Caller(
                    name: name, device: device, person: try fixture.person("\(name)@example.com"),
                    standing: .person(role)))
        }
        realmCases = [RealmCase(path: .users, stored: [Target(.realms)])]
        for caller in callers { try addOwn(caller) }
        let system = try #require(RealmPath("/polls"))
        realmCases.append(RealmCase(path: system, stored: [Target(.fieldTask)]))
        realmCases.append(
            RealmCase(
                path: .manager,
                stored: [
                    Target(.fieldTask), Target(.fieldTask, task), Target(.location),
                    Target(.taskNote, UUID(), ["task": "\"\(task.text)\""]),
                ]))
        realmCases.append(RealmCase(path: .archive, stored: [Target(.fieldTask), Target(.taskNote)]))
        addCommon()
        realmCases.append(RealmCase(path: .catalogue(UUID()), stored: [Target(.reportingTreeNode)]))
        try addTeam(of: other, nil, fixture)
        for caller in callers { try addTeam(of: try #require(caller.person), caller.name, fixture) }
        for (owner, recipient) in [("worker", "manager"), ("manager", "admin"), ("admin", "worker"), ("", "")] {
            addShare(owner, recipient)
        }
        // A reference alone grants nothing: the share's own realm decides.
        let foreign = try #require(realmCases.last?.path.description.split(separator: "/").last)
        try fixture.put(
            .share, try #require(UUID(uuidString: String(foreign))), "{}", in: try .user("worker@example.com"))
        for realmCase in realmCases { try realmCase.restore(fixture) }
        // Last, because it may delete objects that the others depend on.
        let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
        callers.append(Caller(name: "books", device: books, person: nil, standing: .integration))
    }

    private func person(_ name: String) -> UUID? { callers.first { $0.name == name }?.person }

    /// Adds a person's own realm, and its catalogue.
    private mutating func addOwn(_ caller: Caller) throws {
        let (catalogue, email) = (UUID(), "\(caller.name)@example.com")
        var user = Target(.user, UUID(), ["catalogue": "\"\(catalogue.text)\""])
        user.also = ["catalogue"]
        let kinds = PermissionTable.kinds(in: .user).filter { ![.user, .share, .sharedItem].contains($0) }
        let item = Target(.sharedItem, PermissionBodies.sharedItem(UUID(), other))
        // Objects that have the person's id.
        let (person, ownKinds) = (try #require(caller.person), [Kind.location, .deliveryChoice, .privateProfile])
        realmCases.append(
            RealmCase(
                path: try .user(email), relations: [caller.name: .owner],
                stored: [user, item, Target(.fieldTask, task)] + ownKinds.map { Target($0, person) }
                    + kinds.map { Target($0) }))
        realmCases.append(
            RealmCase(
                path: .catalogue(catalogue), relations: [caller.name: .referrer],
                stored: [Target(.reportingTreeNode)]))
    }

    /// Adds objects without effect on permissions, and those that describe people.
    private mutating func addCommon() {
        var stored = [
            Target(.person, other), Target(.personLookup, other), Target(.team, team),
            Target(.membership, PermissionBodies.membership(other, team)),
        ]
        for caller in callers {
            guard let id = caller.person, case .person(let role) = caller.standing else { continue }
            stored.append(Target(.team, id))
            stored.append(Target(.personLookup, id, ["email": "\"\(caller.name)@example.com\""]))
            var person = Target(.person, id)
            person.role = role
            stored.append(person)
        }
        realmCases.append(RealmCase(path: .common, stored: stored))
    }

    private mutating func addTeam(of member: UUID, _ name: String?, _ fixture: GatewayFixture) throws {
        let team = UUID()
        try fixture.makeTeam(team, members: [member])
        realmCases.append(
            RealmCase(
                path: .team(team), relations: name.map { [$0: .member] } ?? [:],
                stored: [
                    Target(.fieldTask), Target(.fieldTask, task), Target(.location),
                    Target(.taskNote, UUID(), ["task": "\"\(task.text)\""]),
                ]))
    }

    private mutating func addShare(_ owner: String, _ recipient: String) {
        let fields = PermissionBodies.share(person(owner) ?? other, person(recipient) ?? third)
        let share = Target(.share, UUID(), fields)
        var relations: [String: Relation] = [:]
        if person(owner) != nil { relations[owner] = .owner }
        if person(recipient) != nil { relations[recipient] = .recipient }
        let stored = [share, Target(.appointment), Target(.note)]
        realmCases.append(RealmCase(path: .share(share.id), relations: relations, stored: stored))
        for index in realmCases.indices where realmCases[index].path.realmClass == .user {
            let isParty = realmCases[index].relations.keys.contains { $0 == owner || $0 == recipient }
            if isParty { realmCases[index].stored.append(share) }
        }
    }
}

import Essentials
package import FoundationEssentials
package import Model
package import ObjectStore
package import Postgres

/// A snapshot of everything that determines which realms a caller may open.
package struct AccessState: Sendable, Equatable {
    package struct Team: Sendable, Equatable {
        let membershipPosition: Int64
        let teamPosition: Int64
    }

    package struct Share: Sendable, Equatable {
        let realm: Int32
        let position: Int64
        let owner: UUID
        let recipient: UUID
    }

    /// The limit of memberships and of shares that count for a person.
    package static let countMax: Int64 = 1_000

    package let caller: Caller
    package private(set) var role = Role.worker
    package private(set) var personPosition: Int64 = 0
    package private(set) var catalogue: UUID?
    package private(set) var teams: [UUID: Team] = [:]
    /// Existing teams that the request names, with the positions of their objects; only managers may open them.
    package private(set) var namedTeams: [UUID: Int64] = [:]
    /// Teams that the person is a member of, or names, and that do not exist (yet).
    package private(set) var missingTeams: Set<UUID> = []
    package private(set) var shares: [UUID: Share] = [:]
    /// Whether the caller is an integration that was removed, and thus has no access.
    package private(set) var isRemoved = false

    /// Creates a state with default access: a worker without teams, shares or catalogue.
    package init(_ caller: Caller) { self.caller = caller }

    // MARK: Access

    package func access(to realm: RealmPath) -> Access {
        guard let object = caller.object else { return Access(.integration) }
        return Access(.person(role), relation(to: realm, object))
    }

    private func relation(to realm: RealmPath, _ object: UUID) -> Relation {
        switch realm.realmClass {
        case .user: realm == caller.own ? .owner : .none
        case .catalogue(let id): id == catalogue ? .referrer : .none
        case .team(let id): teams[id] == nil ? .none : .member
        case .share(let id):
            shares[id].map { $0.owner == object ? .owner : $0.recipient == object ? .recipient : .none } ?? .none
        case .users, .common, .manager, .archive, .system: .none
        }
    }

    package func mayRead(_ realm: RealmPath) -> Bool { isPermitted(realm) && isThere(realm) }

    /// Whether the caller may read the realm, provided that it exists.
    package func isPermitted(_ realm: RealmPath) -> Bool {
        !isRemoved && Permissions.mayRead(realm.realmClass, access(to: realm))
    }

    /// Whether the realm can exist for the caller: clients may name arbitrary team ids.
    package func isThere(_ realm: RealmPath) -> Bool {
        guard caller.object != nil, case .team(let id) = realm.realmClass else { return true }
        return teams[id] != nil || namedTeams[id] != nil
    }

    /// The realms that are opened by default: a person's own, and those that their objects refer to.
    package var unasked: [RealmPath] {
        guard let own = caller.own else { return [] }
        let teams = teams.keys.map(RealmPath.team).sorted()
        let shares = shares.keys.map(RealmPath.share).sorted()
        let all = [own] + (catalogue.map { [.catalogue($0)] } ?? []) + [.common, .manager] + teams + shares
        return all.filter(mayRead)
    }

    /// Returns the realms to open: the default ones, and the readable ones among those named.
    ///
    /// - Parameter isNarrow: Restricts the default realms to those that are named too.
    package func opened(named: [RealmPath], isNarrow: Bool) -> [RealmPath] {
        let requested = isNarrow ? Set(named) : []
        let unasked = isNarrow ? unasked.filter(requested.contains) : unasked
        let included = Set(unasked)
        return unasked + named.filter { !included.contains($0) && mayRead($0) }
    }

    /// Returns the objects, with their positions, that authorise a write to a realm other than the caller's own.
    package func guards(for realm: RealmPath, common: Int32) -> [(key: ObjectKey, position: Int64)] {
        guard let object = caller.object, realm != caller.own else { return [] }
        var guards = [(key: ObjectKey(realm: common, kind: .person, id: object), position: personPosition)]
        switch realm.realmClass {
        case .team(let id):
            if let team = teams[id] {
                let membership = Membership.id(of: object, in: id)
                guards.append((ObjectKey(realm: common, kind: .membership, id: membership), team.membershipPosition))
            }
            guard let position = teams[id]?.teamPosition ?? namedTeams[id] else { break }
            guards.append((ObjectKey(realm: common, kind: .team, id: id), position))
        case .share(let id):
            guard let share = shares[id] else { break }
            guards.append((ObjectKey(realm: share.realm, kind: .share, id: id), share.position))
        case .users, .user, .catalogue, .common, .manager, .archive, .system: break
        }
        return guards
    }

    // MARK: Loading

    /// Returns the statements that load the state; ``init(_:named:_:)`` decodes their results.
    ///
    /// - Parameters:
    ///   - own: The number of a person's own realm.
    ///   - named: Realms of teams and shares to load in addition to those that the person's objects refer to.
    package static func load(_ caller: Caller, own: Int32, common: Int32, named: [RealmPath]) -> [Statement] {
        let environment = caller.environment.rawValue
        guard let object = caller.object else {
            return [
                IntegrationStore.isThere(-caller.id, in: caller.environment), "SELECT WHERE false",
            ]
        }
        var (teams, shares): ([UUID], [RealmPath]) = ([], [])
        for realm in named {
            switch realm.realmClass {
            case .team(let id): teams.append(id)
            case .share: shares.append(realm)
            case .users, .user, .catalogue, .common, .manager, .archive, .system: break
            }
        }
        return [
            objects(environment, own: own, common: common, person: object, teams: teams),
            Self.shares(environment, own: own, named: shares),
        ]
    }

    private static func objects(
        _ environment: Int32, own: Int32, common: Int32, person: UUID, teams: [UUID]
    ) -> Statement {
        let memberships = Membership.ids(of: person)
        return """
            (SELECT kind, id, position, fields, 0::bigint FROM store.object
            WHERE environment_id = \(environment) AND realm_id = \(own) AND kind = \(Kind.user) AND NOT deleted
            ORDER BY id LIMIT 1)
            UNION ALL
            SELECT kind, id, position, fields, 0 FROM store.object
            WHERE environment_id = \(environment) AND realm_id = \(common) AND kind = \(Kind.person) AND id = \(person)
            UNION ALL
            SELECT t.* FROM unnest(\(teams)) AS n(id) CROSS JOIN LATERAL (
                SELECT kind, id, position, fields, 0 FROM store.object
                WHERE environment_id = \(environment) AND realm_id = \(common) AND kind = \(Kind.team) AND id = n.id
                    AND NOT deleted
                OFFSET 0
            ) t
            UNION ALL
            (SELECT m.kind, m.id, m.position, m.fields, t.position
            FROM (
                SELECT * FROM store.object
                WHERE environment_id = \(environment) AND realm_id = \(common) AND kind = \(Kind.membership)
                    AND id BETWEEN \(memberships.lowerBound) AND \(memberships.upperBound) AND NOT deleted
                    AND lower(fields::json->>'person') = \(person.text)
                ORDER BY id LIMIT \(countMax)
            ) m
            LEFT JOIN LATERAL (
                SELECT position FROM store.object
                WHERE environment_id = \(environment) AND realm_id = \(common) AND kind = \(Kind.team)
                    AND id = (m.fields::json->>'team')::uuid AND NOT deleted
                OFFSET 0
            ) t ON true)
            """
    }

    /// Selects the `Share` object in each share's own realm, which names both people; the one in the person's realm
    /// only lists the share.
    private static func shares(_ environment: Int32, own: Int32, named: [RealmPath]) -> Statement {
        """
        SELECT r.id, o.id, o.position, o.fields
        FROM (
            SELECT environment_id, id, path FROM realm.realm
            WHERE environment_id = \(environment) AND path = ANY (\(named.map(\.description)) || ARRAY(
                SELECT '/shares/' || id FROM store.object
                WHERE environment_id = \(environment) AND realm_id = \(own) AND kind = \(Kind.share) AND NOT deleted
                ORDER BY id LIMIT \(countMax)))
            OFFSET 0
        ) r
        CROSS JOIN LATERAL (
            SELECT * FROM store.object
            WHERE environment_id = \(environment) AND realm_id = r.id AND kind = \(Kind.share)
                AND id = substr(r.path, 9)::uuid AND NOT deleted
            OFFSET 0
        ) o
        """
    }

    /// Decodes the results of ``load(_:own:common:named:)``.
    package init(_ caller: Caller, named: [RealmPath], _ results: [Rows]) throws {
        self.init(caller)
        guard caller.object != nil else {
            isRemoved = results[0].count == 0
            return
        }
        for row in results[0] {
            let (kind, id, position, json, teamPosition) = try row.decode(
                Kind.self, UUID.self, Int64.self, CanonicalJSON?.self, Int64?.self)
            // Without a `Person` object the role is worker; writes are still guarded by the position of the deletion.
            if kind == .person { personPosition = position }
            guard let bytes = json?.bytes else { continue }
            let fields = try JSONObject(bytes)
            switch kind {
            case .user: catalogue = fields.id(of: "catalogue")
            case .person: role = Role(of: fields)
            case .team: namedTeams[id] = position
            case .membership:
                guard let team = fields.id(of: "team") else { continue }
                guard let teamPosition else {
                    missingTeams.insert(team)
                    continue
                }
                teams[team] = Team(membershipPosition: position, teamPosition: teamPosition)
            default: break
            }
        }
        for case .team(let id) in named.map(\.realmClass) where namedTeams[id] == nil { missingTeams.insert(id) }
        for (realm, id, position, json) in try results[1].decode(
            Int32.self, UUID.self, Int64.self, CanonicalJSON.self)
        {
            let fields = try JSONObject(json.bytes)
            guard let owner = fields.id(of: "owner"), let recipient = fields.id(of: "recipient") else { continue }
            shares[id] = Share(realm: realm, position: position, owner: owner, recipient: recipient)
        }
    }
}

package import Model

/// Who asks, as far as permissions go.
package enum Standing: Hashable, Sendable {
    /// A person of the environment, on a device.
    case person(Role)
    /// A program that the environment's administrator let in.
    case integration

    /// Whether what is for managers is for them.
    package var isManager: Bool {
        switch self {
        case .person(let role): role.isManager
        case .integration: false
        }
    }
}

/// How a caller stands to a realm.
package enum Relation: Hashable, CaseIterable, Sendable {
    /// A stranger to it.
    case none
    /// It is the person's own realm, or holds what the person shares.
    case owner
    /// The person is in the realm's team.
    case member
    /// The person's `User` object refers to the catalogue.
    case referrer
    /// The realm holds what is shared with the person.
    case recipient
}

/// All that decides on what a caller may do in a realm.
package struct Access: Hashable, Sendable {
    /// Who asks.
    package var standing: Standing
    /// How they stand to the realm.
    package var relation: Relation

    /// A caller before a realm.
    package init(_ standing: Standing, _ relation: Relation = .none) {
        self.standing = standing
        self.relation = relation
    }
}

/// What of an object of one kind a caller may write.
package struct Grant: Equatable, Sendable {
    /// What may be done with it.
    package var operations: Set<Mutation.Operation>
    /// The fields that may be given.
    package var fields: [String]
}

/// An object that is to be written, as far as permissions go.
package struct ObjectStanding: Equatable, Sendable {
    /// What it is.
    package var kind: Kind
    /// Whether its id is that of the person who asks.
    package var isOwn: Bool
    /// What the role of a `Person` is.
    package var roleBefore: Role
    /// What it is to become, when `role` is among the fields.
    package var roleAfter: Role?

    /// An object.
    package init(_ kind: Kind, isOwn: Bool = false, roleBefore: Role = .worker, roleAfter: Role? = nil) {
        self.kind = kind
        self.isOwn = isOwn
        self.roleBefore = roleBefore
        self.roleAfter = roleAfter
    }
}

/// Who may do what in which realm: the whole table, as a pure function.
package enum Permissions {
    /// Whether a caller may open a realm and read all of it.
    package static func mayRead(_ realm: RealmClass, _ access: Access) -> Bool {
        switch access.standing {
        case .integration: realm != .system
        case .person(let role):
            switch realm {
            case .users, .system: false
            case .user: access.relation == .owner
            case .catalogue: access.relation == .referrer
            case .common: true
            case .manager, .archive: role.isManager
            case .team: access.relation == .member || role.isManager
            case .share: access.relation == .owner || access.relation == .recipient
            }
        }
    }

    /// The kinds of objects that a realm holds; nobody writes others into it.
    package static func kinds(in realm: RealmClass) -> [Kind] {
        Kind.allCases.filter { $0.row.realms.contains(realm.name) }
    }

    /// Whether an integration may read a kind: it is in some realm that is not the services' own.
    package static func isReadByIntegrations(_ kind: Kind) -> Bool { !kind.row.realms.isEmpty }

    /// What a caller may write of an object in a realm; `nil`: nothing.
    package static func grant(_ object: ObjectStanding, in realm: RealmClass, _ access: Access) -> Grant? {
        guard object.kind.row.realms.contains(realm.name) else { return nil }
        return switch access.standing {
        case .integration: grantToIntegration(object.kind, in: realm)
        case .person(let role): grant(object, in: realm, to: access.relation, isManager: role.isManager)
        }
    }

    private static func grant(
        _ object: ObjectStanding, in realm: RealmClass, to relation: Relation, isManager: Bool
    ) -> Grant? {
        let kind = object.kind
        func grant(
            _ operations: Set<Mutation.Operation>, _ fields: [String] = kind.fieldNames, when isAllowed: Bool
        ) -> Grant? {
            isAllowed ? Grant(operations: operations, fields: fields) : nil
        }
        let all: Set<Mutation.Operation> = [.put, .patch, .delete]
        switch (realm, kind) {
        case (.user, .timeEntry):
            let fields = EntryField.allCases.filter { !$0.isServerOwned }.map(\.rawValue)
            return grant(all, fields, when: relation == .owner)
        case (.user, .location): return grant(all, when: relation == .owner && object.isOwn)
        case (.user, .appointment), (.user, .note): return grant(all, when: relation == .owner)
        case (.user, .sharedItem): return grant([.put, .delete], SharedItem.ownerNames, when: relation == .owner)
        case (.user, .fieldTask): return grant([.patch], FieldTask.progressNames, when: relation == .owner)
        case (.user, .notice): return grant([.patch, .delete], Notice.ownerNames, when: relation == .owner)
        case (.user, .deliveryChoice):
            return grant(all, DeliveryChoice.ownerNames, when: relation == .owner && object.isOwn)
        case (.user, .defectCommand): return grant(all, DefectCommand.ownerNames, when: relation == .owner)
        case (.common, .person):
            if object.isOwn { return Grant(operations: [.put, .patch], fields: ["name", "avatar"]) }
            return grant([.patch], ["role"], when: isManager)
        case (.common, .personLookup): return grant(all, when: object.isOwn)
        case (.common, .team), (.manager, .fieldTask): return grant(all, when: isManager)
        case (.common, .membership): return grant([.put, .delete], when: isManager)
        case (.team, .fieldTask): return grant([.patch], FieldTask.progressNames, when: relation == .member)
        case (.share, .share): return grant([.delete], [], when: relation == .owner || relation == .recipient)
        case (.share, .appointment), (.share, .note): return grant([.delete], [], when: relation == .recipient)
        default: return nil
        }
    }

    /// All but what the services own that copy tasks, positions, shared items and defects, what people choose for
    /// themselves, and what is done with a person's own login.
    private static func grantToIntegration(_ kind: Kind, in realm: RealmClass) -> Grant? {
        switch (realm, kind) {
        case (.user, .fieldTask), (.team, .fieldTask), (.archive, .fieldTask): nil
        case (.manager, .location), (.team, .location): nil
        case (.user, .share), (.share, .appointment), (.share, .note), (.user, .defect): nil
        case (.user, .deliveryChoice): nil
        case (.user, .defectCommand), (.user, .defectAccount): nil
        case (.share, .share): Grant(operations: [.delete], fields: [])
        default: Grant(operations: [.put, .patch, .delete], fields: kind.fieldNames)
        }
    }
}

extension Permissions {
    /// Whether there is anything in a realm that a caller may write.
    package static func mayWrite(_ realm: RealmClass, _ access: Access) -> Bool {
        mayRead(realm, access)
            && kinds(in: realm).contains { grant(ObjectStanding($0, isOwn: true), in: realm, access) != nil }
    }
}

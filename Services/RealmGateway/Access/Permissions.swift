import Model

/// Who asks, as far as permissions go.
enum Standing: Hashable, Sendable {
    /// A person of the environment, on a device.
    case person(Role)
    /// A program that the environment's administrator let in.
    case integration

    /// Whether what is for managers is for them.
    var isManager: Bool {
        switch self {
        case .person(let role): role.isManager
        case .integration: false
        }
    }
}

/// How a caller stands to a realm.
enum Relation: Hashable, CaseIterable, Sendable {
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
struct Access: Hashable, Sendable {
    /// Who asks.
    var standing: Standing
    /// How they stand to the realm.
    var relation: Relation

    /// A caller before a realm.
    init(_ standing: Standing, _ relation: Relation = .none) {
        self.standing = standing
        self.relation = relation
    }
}

/// What of an object of one kind a caller may write.
struct Grant: Equatable, Sendable {
    /// What may be done with it.
    var operations: Set<Mutation.Operation>
    /// The fields that may be given.
    var fields: [String]
}

/// An object that is to be written, as far as permissions go.
struct ObjectStanding: Equatable, Sendable {
    /// What it is.
    var kind: Kind
    /// Whether its id is that of the person who asks.
    var isOwn: Bool
    /// What the role of a `Person` is.
    var roleBefore: Role
    /// What it is to become, when `role` is among the fields.
    var roleAfter: Role?

    /// An object.
    init(_ kind: Kind, isOwn: Bool = false, roleBefore: Role = .worker, roleAfter: Role? = nil) {
        self.kind = kind
        self.isOwn = isOwn
        self.roleBefore = roleBefore
        self.roleAfter = roleAfter
    }
}

/// Who may do what in which realm: the whole table, as a pure function.
enum Permissions {
    /// Whether a caller may open a realm and read all of it.
    static func mayRead(_ realm: RealmClass, _ access: Access) -> Bool {
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
    static func kinds(in realm: RealmClass) -> [Kind] { Kind.allCases.filter { $0.row.realms.contains(realm.name) } }

    /// Whether an integration may read a kind: it is in some realm that is not the services' own.
    static func isReadByIntegrations(_ kind: Kind) -> Bool { !kind.row.realms.isEmpty }

    /// What a caller may write of an object in a realm; `nil`: nothing.
    static func grant(_ object: ObjectStanding, in realm: RealmClass, _ access: Access) -> Grant? {
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

    /// Why a caller may not do this to an object; `nil` when they may.
    ///
    /// - Parameter fields: The names of the fields that are given.
    static func objection(
        to operation: Mutation.Operation, _ object: ObjectStanding, fields: [String], in realm: RealmClass,
        _ access: Access
    ) -> MutationProblem? {
        guard mayRead(realm, access) else {
            return MutationProblem(.realmNotPermitted, "you may not write to this realm")
        }
        guard let grant = grant(object, in: realm, access) else {
            return MutationProblem(.kindNotAllowed, "you may not write this \(object.kind.rawValue) object here")
        }
        guard grant.operations.contains(operation) else {
            return MutationProblem(
                .operationNotAllowed, "you may not \(operation.rawValue) this \(object.kind.rawValue) object")
        }
        if let field = fields.first(where: { !grant.fields.contains($0) }) {
            let list = grant.fields.joined(separator: ", ")
            guard object.kind.fieldNames.contains(field) else {
                return MutationProblem(
                    .unknownField, "\(object.kind.rawValue) has no field '\(field.prefix(64))'; you may write: \(list)")
            }
            return MutationProblem(.fieldNotAllowed, "'\(field)' is not yours to write; you may write: \(list)")
        }
        return objectionToRole(object, access)
    }

    /// Managers make managers and workers of others; who becomes an admin, or is none any more, only admins say.
    private static func objectionToRole(_ object: ObjectStanding, _ access: Access) -> MutationProblem? {
        guard object.kind == .person, let after = object.roleAfter else { return nil }
        switch access.standing {
        case .integration, .person(.admin): return nil
        case .person(.manager), .person(.worker):
            guard object.roleBefore == .admin || after == .admin else { return nil }
            return MutationProblem(.fieldNotAllowed, "'role': only an admin says who is an admin")
        }
    }
}

extension Permissions {
    /// Whether there is anything in a realm that a caller may write.
    static func mayWrite(_ realm: RealmClass, _ access: Access) -> Bool {
        mayRead(realm, access)
            && kinds(in: realm).contains { grant(ObjectStanding($0, isOwn: true), in: realm, access) != nil }
    }
}

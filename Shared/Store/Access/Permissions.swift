import KindSchema
package import Model

/// The class of a caller that permissions depend on.
package enum AccessPrincipal: Hashable, Sendable {
    /// A person of the environment, on a device.
    case person(Role)
    /// A program that an administrator added to the environment.
    case integration
}

/// The relation of a caller to a realm.
package enum Relation: Hashable, CaseIterable, Sendable {
    /// No relation.
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

/// Everything that determines a caller's permissions in a realm.
package struct Access: Hashable, Sendable {
    /// The caller's class.
    package var standing: AccessPrincipal
    /// The caller's relation to the realm.
    package var relation: Relation

    /// Creates the access of a caller to a realm.
    package init(_ standing: AccessPrincipal, _ relation: Relation = .none) {
        self.standing = standing
        self.relation = relation
    }
}

/// The permitted writes of a caller to objects of one kind.
package struct Grant: Equatable, Sendable {
    /// The permitted operations.
    package var operations: Set<Mutation.Operation>
    /// The writable fields.
    package var fields: [String]
}

/// The properties of an object to be written that permissions depend on.
package struct WriteTarget: Equatable, Sendable {
    /// The object's kind.
    package var kind: Kind
    /// Whether its id is the caller's own; for a `TaskNote`, whether the caller is its author.
    package var isOwn: Bool
    /// Whether it exists; matters for kinds that an environment declares.
    package var exists: Bool
    /// The stored role of a `Person`.
    package var roleBefore: Role
    /// The requested role, if `role` is among the fields.
    package var roleAfter: Role?

    /// Creates the properties of an object.
    package init(
        _ kind: Kind, isOwn: Bool = false, exists: Bool = false, roleBefore: Role = .worker, roleAfter: Role? = nil
    ) {
        self.kind = kind
        self.exists = exists
        self.isOwn = isOwn
        self.roleBefore = roleBefore
        self.roleAfter = roleAfter
    }
}

/// The permission table of callers, realms and kinds, as pure functions.
package enum Permissions {
    /// Whether a caller may open a realm and read all its objects.
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

    /// Whether an integration may read a kind: some non-internal realm holds it.
    package static func isReadByIntegrations(_ kind: Kind) -> Bool { !kind.row.realms.isEmpty }

    /// Returns the permitted writes to an object in a realm; `nil` if there are none.
    package static func grant(_ object: WriteTarget, in realm: RealmClass, _ access: Access) -> Grant? {
        guard object.kind.row.realms.contains(realm.name) else { return nil }
        if case .own(let kind) = object.kind { return grant(kind, exists: object.exists, in: realm, access) }
        return switch access.standing {
        case .integration: grantToIntegration(object.kind, in: realm)
        case .person(let role): grant(object, in: realm, to: access.relation, isManager: role.isManager)
        }
    }

    private static func grant(
        _ object: WriteTarget, in realm: RealmClass, to relation: Relation, isManager: Bool
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
        case (.user, .privateProfile): return grant(all, when: relation == .owner && object.isOwn)
        case (.user, .deletedObject), (.user, .endedShare): return grant([.delete], [], when: relation == .owner)
        case (.user, .defectCommand): return grant(all, DefectCommand.ownerNames, when: relation == .owner)
        case (.common, .person):
            if object.isOwn { return Grant(operations: [.put, .patch], fields: Person.profileNames) }
            return grant([.patch], Person.profileNames + ["role"], when: isManager)
        case (.common, .personLookup): return grant(all, when: object.isOwn)
        case (.common, .team), (.manager, .fieldTask): return grant(all, when: isManager)
        case (.common, .membership): return grant([.put, .delete], when: isManager)
        case (.team, .fieldTask): return grant([.patch], FieldTask.progressNames, when: relation == .member)
        case (.user, .taskNote), (.team, .taskNote), (.manager, .taskNote):
            return grantToNote(isOwn: object.isOwn, in: realm, to: relation, isManager: isManager)
        case (.share, .share): return grant([.delete], [], when: relation == .owner || relation == .recipient)
        case (.share, .appointment), (.share, .note): return grant([.delete], [], when: relation == .recipient)
        default: return nil
        }
    }

    /// Authors write their own notes about tasks where their tasks are; managers delete all notes in `/manager` and in
    /// teams.
    private static func grantToNote(
        isOwn: Bool, in realm: RealmClass, to relation: Relation, isManager: Bool
    ) -> Grant? {
        let (mayWrite, mayDelete) =
            switch realm.name {
            case .user: (relation == .owner, false)
            case .team: (relation == .member, isManager)
            case .manager: (isManager, isManager)
            case .users, .catalogue, .common, .archive, .share, .system: (false, false)
            }
        if isOwn, mayWrite { return Grant(operations: [.put, .patch, .delete], fields: Kind.taskNote.fieldNames) }
        return mayDelete ? Grant(operations: [.delete], fields: []) : nil
    }

    /// Integrations may write everything except derived objects (copied tasks and notes, positions, shared items,
    /// defects), people's delivery choices, deleted objects, ended shares, and commands and accounts of personal logins
    /// in defect trackers.
    private static func grantToIntegration(_ kind: Kind, in realm: RealmClass) -> Grant? {
        switch (realm, kind) {
        case (.user, .fieldTask), (.team, .fieldTask), (.archive, .fieldTask): nil
        case (.user, .taskNote), (.team, .taskNote), (.archive, .taskNote): nil
        case (.manager, .location), (.team, .location): nil
        case (.user, .share), (.share, .appointment), (.share, .note), (.user, .defect): nil
        case (.user, .deliveryChoice), (.user, .deletedObject), (.user, .endedShare): nil
        case (.user, .defectCommand), (.user, .defectAccount): nil
        case (.share, .share): Grant(operations: [.delete], fields: [])
        default: Grant(operations: [.put, .patch, .delete], fields: kind.fieldNames)
        }
    }
}

extension Permissions {
    /// Whether a caller may write any object of some kinds in a realm.
    package static func mayWrite(_ realm: RealmClass, _ access: Access, kinds: [Kind]) -> Bool {
        func mayWrite(_ kind: Kind, exists: Bool) -> Bool {
            grant(WriteTarget(kind, isOwn: true, exists: exists), in: realm, access) != nil
        }
        return mayRead(realm, access) && kinds.contains { mayWrite($0, exists: false) || mayWrite($0, exists: true) }
    }
}

extension Permissions {
    /// Returns what the declaration of a kind grants: all to integrations, and to people what any permission allows. A
    /// put or patch of an object that does not exist creates it.
    private static func grant(
        _ kind: OwnKind, exists: Bool, in realm: RealmClass, _ access: Access
    ) -> Grant? {
        guard let declaration = kind.declaration,
            let realmName = KindDeclaration.RealmName.allCases.first(where: { $0.realmClass == realm.name })
        else { return nil }
        guard case .person(let role) = access.standing else {
            return Grant(operations: [.put, .patch, .delete], fields: declaration.fieldNames)
        }
        let writers = KindDeclaration.Writer.allCases.filter { writer in
            switch writer {
            case .owner: access.relation == .owner
            case .member: access.relation == .member
            case .manager: role.isManager
            case .person: true
            }
        }
        let audience = OwnKind.Audience(writers, in: realmName, exists: exists)
        guard let writes = kind.permittedWrites(of: audience), writes.fields != nil || writes.mayDelete else {
            return nil
        }
        var operations: Set<Mutation.Operation> = writes.fields == nil ? [] : [.put, .patch]
        if writes.mayDelete { operations.insert(.delete) }
        return Grant(operations: operations, fields: writes.fields ?? [])
    }
}

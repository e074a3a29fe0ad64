import Access
import Model

@testable import RealmGateway

/// The permission rules as text: an independent second statement of them, to compare the implementation with.
enum PermissionTable {
    /// Read permissions: class, standing (`person`: of any role), relation.
    private static let reading = """
        user person owner
        catalogue person referrer
        common person any
        manager admin any
        manager manager any
        archive admin any
        archive manager any
        team person member
        team admin any
        team manager any
        share person owner
        share person recipient
        users integration any
        user integration any
        catalogue integration any
        common integration any
        manager integration any
        archive integration any
        team integration any
        share integration any
        """

    /// Write permissions: class, standing, relation, kind, object, operations, fields (`*`: all).
    private static let writing = """
        user person owner TimeEntry any put,patch,delete text,reportingTemplate,reporting,timeType,entryDate,startTime,\
        endTime,durationSeconds,createdOn,submitRequested,status
        user person owner Location own put,patch,delete *
        user person owner Appointment any put,patch,delete *
        user person owner Note any put,patch,delete *
        user person owner SharedItem any put,delete kind,item,recipient,since
        user person owner FieldTask any patch isCompleted,completionDate,completedBy
        user person owner TaskNote own put,patch,delete *
        user person owner Notice any patch,delete isRead
        user person owner DeliveryChoice own put,patch,delete webhook,email,pushes,devices,digestAt,quietHours,\
        timeZone,excludedCodes
        user person owner PrivateProfile own put,patch,delete *
        user person owner DeletedObject any delete -
        user person owner EndedShare any delete -
        user person owner DefectCommand any put,patch,delete operation,record,actionName,fields,base,choicesOf,\
        folder,query,fromRow,submitRequested
        common person any Person own put,patch name,firstName,lastName,avatar
        common admin any Person other patch name,firstName,lastName,avatar,role
        common manager any Person other patch name,firstName,lastName,avatar,role
        common admin any Team any put,patch,delete *
        common manager any Team any put,patch,delete *
        common admin any Membership any put,delete *
        common manager any Membership any put,delete *
        common person any PersonLookup own put,patch,delete *
        manager admin any FieldTask any put,patch,delete *
        manager manager any FieldTask any put,patch,delete *
        manager admin any TaskNote own put,patch,delete *
        manager manager any TaskNote own put,patch,delete *
        manager admin any TaskNote other delete -
        manager manager any TaskNote other delete -
        team person member TaskNote own put,patch,delete *
        team admin any TaskNote any delete -
        team manager any TaskNote any delete -
        team person member FieldTask any patch isCompleted,completionDate,completedBy
        share person owner Share any delete -
        share person recipient Share any delete -
        share person recipient Appointment any delete -
        share person recipient Note any delete -
        users integration any Realms any put,patch,delete *
        user integration any User any put,patch,delete *
        user integration any ReportingContext any put,patch,delete *
        user integration any ReportingTemplate any put,patch,delete *
        user integration any ReportingTreeNode any put,patch,delete *
        user integration any TimeEntry any put,patch,delete *
        user integration any TimeEntryStatus any put,patch,delete *
        user integration any Location any put,patch,delete *
        user integration any Appointment any put,patch,delete *
        user integration any Note any put,patch,delete *
        user integration any SharedItem any put,patch,delete *
        user integration any Notice any put,patch,delete *
        user integration any PrivateProfile any put,patch,delete *
        catalogue integration any ReportingTreeNode any put,patch,delete *
        common integration any Person any put,patch,delete *
        common integration any PersonLookup any put,patch,delete *
        common integration any Team any put,patch,delete *
        common integration any Membership any put,patch,delete *
        manager integration any FieldTask any put,patch,delete *
        manager integration any TaskNote any put,patch,delete *
        share integration any Share any delete -
        """

    /// Role changes: caller's standing, whose role, from, to.
    private static let roles = """
        admin other admin,manager,worker admin,manager,worker
        manager other manager,worker manager,worker
        integration own admin,manager,worker admin,manager,worker
        integration other admin,manager,worker admin,manager,worker
        """

    /// A row of ``writing``.
    private struct Row: Sendable {
        let start: [String]
        let kind: String
        let which: String
        let operations: [String]
        let fields: [String]

        init(_ words: [String]) {
            start = Array(words[..<3])
            (kind, which) = (words[3], words[4])
            operations = words[5].split(separator: ",").map(String.init)
            fields = words[6].split(separator: ",").map(String.init)
        }

        func isAbout(_ object: WriteTarget) -> Bool {
            guard kind == object.kind.rawValue else { return false }
            return which == "any" || which == (object.isOwn ? "own" : "other")
        }

        func allows(_ field: String, of kind: Kind) -> Bool {
            fields == ["*"] ? kind.fieldNames.contains(field) : fields.contains(field)
        }
    }

    private static let readingRows = words(reading)
    private static let writingRows = words(writing).map(Row.init)
    private static let roleRows = words(roles)

    private static func words(_ text: String) -> [[String]] {
        text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    }

    private static func name(_ realm: RealmClass) -> String {
        switch realm {
        case .users: "users"
        case .user: "user"
        case .catalogue: "catalogue"
        case .common: "common"
        case .manager: "manager"
        case .archive: "archive"
        case .team: "team"
        case .share: "share"
        case .system: "system"
        }
    }

    private static func names(_ standing: AccessPrincipal) -> [String] {
        switch standing {
        case .person(let role): ["person", role.rawValue]
        case .integration: ["integration"]
        }
    }

    /// Returns whether a row's class, standing and relation match.
    private static func fits(_ start: [String], _ realm: RealmClass, _ access: Access) -> Bool {
        start[0] == name(realm) && names(access.standing).contains(start[1])
            && (start[2] == "any" || start[2] == "\(access.relation)")
    }

    /// Returns whether a caller may read a realm.
    static func mayRead(_ realm: RealmClass, _ access: Access) -> Bool {
        readingRows.contains { fits($0, realm, access) }
    }

    /// The built-in kinds that a realm may hold.
    static func kinds(in realm: RealmClass) -> [Kind] { Kind.allCases.filter { $0.row.realms.contains(realm.name) } }

    /// Returns whether a caller may write any object of a realm.
    static func mayWrite(_ realm: RealmClass, _ access: Access) -> Bool {
        mayRead(realm, access) && writingRows.contains { fits($0.start, realm, access) }
    }

    /// Returns the code with which a mutation is rejected; `nil` if it is permitted.
    static func problem(
        of operation: Mutation.Operation, _ object: WriteTarget, fields: [String], in realm: RealmClass,
        _ access: Access
    ) -> MutationProblem.Code? {
        guard mayRead(realm, access) else { return .realmNotPermitted }
        let about = writingRows.filter { $0.isAbout(object) && fits($0.start, realm, access) }
        guard !about.isEmpty else { return .kindNotAllowed }
        let rows = about.filter { $0.operations.contains(operation.rawValue) }
        guard !rows.isEmpty else { return .operationNotAllowed }
        let refused = fields.first { field in !rows.contains { $0.allows(field, of: object.kind) } }
        if let refused { return object.kind.fieldNames.contains(refused) ? .fieldNotAllowed : .unknownField }
        guard object.kind == .person, let role = object.roleAfter else { return nil }
        return mayMake(role, of: object.roleBefore, isOwn: object.isOwn, access.standing) ? nil : .fieldNotAllowed
    }

    /// Returns whether a caller of this standing may make this change of a role.
    static func mayMake(_ role: Role, of before: Role, isOwn: Bool, _ standing: AccessPrincipal) -> Bool {
        func has(_ list: String, _ role: Role) -> Bool { list.split(separator: ",").contains { $0 == role.rawValue } }
        return roleRows.contains { row in
            names(standing).contains(row[0]) && row[1] == (isOwn ? "own" : "other") && has(row[2], before)
                && has(row[3], role)
        }
    }
}

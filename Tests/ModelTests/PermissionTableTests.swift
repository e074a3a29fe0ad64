import Foundation
import Model
import Testing

/// The whole table of permissions: every class of realm, standing, relation, kind, operation and field, against a
/// second statement of the rules in a few lines of text.
@Suite struct PermissionTableTests {
    static let team = UUID()
    static let classes: [(name: String, realm: RealmClass)] = [
        ("users", .users), ("user", .user), ("catalogue", .catalogue(UUID())), ("common", .common),
        ("manager", .manager), ("team", .team(team)), ("share", .share(UUID())), ("system", .system),
    ]
    static let standings: [(name: String, standing: Standing)] = [
        ("admin", .person(.admin)), ("manager", .person(.manager)), ("worker", .person(.worker)),
        ("integration", .integration),
    ]

    /// Who may read: standing or `any`, relation or `any`.
    static let reading = """
        user any owner
        catalogue any referrer
        common any any
        manager admin any
        manager manager any
        team any member
        team admin any
        team manager any
        share any owner
        share any recipient
        users integration any
        user integration any
        catalogue integration any
        common integration any
        manager integration any
        team integration any
        share integration any
        """

    /// Who may write what: class, standing, relation, kind, whose object, operations, fields (`*`: all there are).
    static let writing = """
        user person owner TimeEntry any put,patch,delete text,reportingTemplate,reporting,timeType,entryDate,startTime,\
        endTime,durationSeconds,createdOn,submitRequested,status
        user person owner Location own put,patch,delete *
        common person any Person own put,patch name,avatar
        common admin any Person other patch role
        common manager any Person other patch role
        common admin any Team any put,patch,delete *
        common manager any Team any put,patch,delete *
        common admin any Membership any put,delete *
        common manager any Membership any put,delete *
        common person any PersonLookup own put,patch,delete *
        manager admin any FieldTask any put,patch,delete *
        manager manager any FieldTask any put,patch,delete *
        team admin any FieldTask any put,patch,delete *
        team manager any FieldTask any put,patch,delete *
        team worker member FieldTask any patch isCompleted,completionDate
        share person owner Share any delete -
        share person recipient Share any delete -
        users integration any Realms any put,patch,delete *
        user integration any User any put,patch,delete *
        user integration any ReportingContext any put,patch,delete *
        user integration any ReportingTemplate any put,patch,delete *
        user integration any TimeEntry any put,patch,delete *
        user integration any TimeEntryStatus any put,patch,delete *
        user integration any Location any put,patch,delete *
        user integration any FieldTask any put,patch,delete *
        user integration any Share any put,patch,delete *
        catalogue integration any ReportingTreeNode any put,patch,delete *
        common integration any Person any put,patch,delete *
        common integration any PersonLookup any put,patch,delete *
        common integration any Team any put,patch,delete *
        common integration any Membership any put,patch,delete *
        manager integration any FieldTask any put,patch,delete *
        manager integration any Location any put,patch,delete *
        team integration any FieldTask any put,patch,delete *
        team integration any Location any put,patch,delete *
        share integration any Share any put,patch,delete *
        """

    /// What is added for an object that is not there yet.
    static let writingNew = """
        share person owner Share any put,delete *
        """

    private static func rows(_ text: String) -> [[String]] {
        text.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
    }

    private static func fits(_ pattern: String, _ standing: String) -> Bool {
        pattern == "any" || pattern == standing || pattern == "person" && standing != "integration"
    }

    @Test func everyCellOfReading() {
        var cellCount = 0
        let rows = Self.rows(Self.reading)
        for (realmName, realm) in Self.classes {
            for (name, standing) in Self.standings {
                for relation in Relation.allCases {
                    let expected = rows.contains { row in
                        row[0] == realmName && Self.fits(row[1], name)
                            && (row[1] == "any" ? standing != .integration : true)
                            && (row[2] == "any" || row[2] == "\(relation)")
                    }
                    let access = Access(standing, relation)
                    #expect(Permissions.mayRead(realm, access) == expected, "\(realmName) \(name) \(relation)")
                    cellCount += 1
                }
            }
        }
        #expect(cellCount == 8 * 4 * 5)
    }

    @Test func everyCellOfWriting() {
        var cellCount = 0
        var allowedCount = 0
        for isNew in [true, false] {
            let rows = Self.rows(Self.writing) + (isNew ? Self.rows(Self.writingNew) : [])
            let counts = cells(of: rows, isNew: isNew)
            cellCount += counts.all
            allowedCount += counts.allowed
        }
        #expect(cellCount > 80_000)
        #expect(allowedCount > 600)
    }

    private func cells(of rows: [[String]], isNew: Bool) -> (all: Int, allowed: Int) {
        var cellCount = 0
        var allowedCount = 0
        for (realmName, realm) in Self.classes {
            for (name, standing) in Self.standings {
                for relation in Relation.allCases {
                    let access = Access(standing, relation)
                    let there = rows.filter { row in
                        row[0] == realmName && Self.fits(row[1], name) && (row[2] == "any" || row[2] == "\(relation)")
                    }
                    for kind in Kind.allCases {
                        for isOwn in [true, false] {
                            let own = isOwn ? "own" : "other"
                            let found = there.filter { $0[3] == kind.rawValue && ($0[4] == "any" || $0[4] == own) }
                            for operation in Mutation.Operation.allCases {
                                for field in kind.fieldNames + ["nonsense", "-"] {
                                    let expected =
                                        Permissions.mayRead(realm, access)
                                        && found.contains { Self.allows($0, operation, field, kind) }
                                    let objection = Permissions.objection(
                                        to: operation, ObjectStanding(kind, isOwn: isOwn, isNew: isNew),
                                        fields: field == "-" ? [] : [field], in: realm, access)
                                    if (objection == nil) != expected {
                                        Issue.record(
                                            "\(realmName) \(name) \(relation) \(kind) \(own) \(operation) \(field)")
                                    }
                                    cellCount += 1
                                    if expected { allowedCount += 1 }
                                }
                            }
                        }
                    }
                }
            }
        }
        return (cellCount, allowedCount)
    }

    private static func allows(
        _ row: [String], _ operation: Mutation.Operation, _ field: String, _ kind: Kind
    ) -> Bool {
        guard row[5].split(separator: ",").contains(Substring(operation.rawValue)) else { return false }
        if field == "-" { return true }
        // What a share's people may do names no field.
        if row[6] == "-" { return kind.fieldNames.contains(field) && row[2] == "owner" }
        return row[6] == "*" ? kind.fieldNames.contains(field) : row[6].split(separator: ",").contains(Substring(field))
    }

    /// Who may make what of whom: rows are who asks, then from, then to.
    @Test func everyChangeOfARole() {
        for (name, standing) in Self.standings {
            for isOwn in [true, false] {
                for before in Role.allCases {
                    for after in Role.allCases {
                        let object = ObjectStanding(.person, isOwn: isOwn, roleBefore: before, roleAfter: after)
                        let isAllowed =
                            Permissions.objection(
                                to: .patch, object, fields: ["role"], in: .common, Access(standing)) == nil
                        let expected =
                            switch name {
                            case "integration": true
                            case "admin": !isOwn
                            case "manager": !isOwn && before != .admin && after != .admin
                            default: false
                            }
                        #expect(isAllowed == expected, "\(name) \(isOwn) \(before) \(after)")
                    }
                }
            }
        }
    }

    @Test func aShareBelongsToWhoMakesIt() throws {
        let (ana, ben, id) = (UUID(), UUID(), UUID())
        func put(_ owner: UUID, by author: UUID, over current: StoredObject? = nil, id object: UUID? = nil) -> Bool {
            let fields = Array("{\"owner\":\"\(owner)\",\"recipient\":\"\(ben)\"}".utf8)
            let mutation = Mutation(operation: .put, kind: .share, id: object ?? id, fields: fields)
            let decision = MutationRules.decide(
                mutation, current: current, in: .share(id), by: Author(Access(.person(.worker)), person: author))
            if case .accept = decision { return true } else { return false }
        }
        #expect(put(ana, by: ana))
        #expect(!put(ana, by: ben))
        #expect(!put(ana, by: ana, id: UUID()))
        #expect(!put(ana, by: ana, over: .tombstone))
        // With oneself there is nothing to share.
        #expect(!put(ben, by: ben))
        #expect(!put(ana, by: ana, over: .live(fields: Array("{\"owner\":\"\(ben)\",\"recipient\":\"\(ana)\"}".utf8))))
    }

    @Test func aMembershipIsNamedByItsPersonAndItsTeam() throws {
        let (person, team) = (try #require(UUID(uuidString: "01020304-0506-4708-890A-0B0C0D0E0F10")), UUID())
        let id = Membership.id(of: person, in: team)
        #expect(id.text.hasPrefix("01020304-0506-4708-") && id.text.hasSuffix(team.text.suffix(17)))
        #expect(Membership.ids(of: person).contains(id))
        #expect(!Membership.ids(of: UUID()).contains(id))
        let fields = Array("{\"person\":\"\(person)\",\"team\":\"\(team)\"}".utf8)
        for (object, isAccepted) in [(id, true), (UUID(), false)] {
            let decision = MutationRules.decide(
                Mutation(operation: .put, kind: .membership, id: object, fields: fields), current: nil, in: .common,
                by: Author(Access(.person(.manager)), person: UUID()))
            if case .accept = decision { #expect(isAccepted) } else { #expect(!isAccepted) }
        }
    }

    @Test func whoLeftATeamMayComeAgain() {
        let (person, team) = (UUID(), UUID())
        let fields = Array("{\"person\":\"\(person)\",\"team\":\"\(team)\"}".utf8)
        let put = Mutation(
            operation: .put, kind: .membership, id: Membership.id(of: person, in: team), fields: fields)
        let manager = Author(Access(.person(.manager)), person: UUID())
        #expect(
            MutationRules.decide(put, current: .tombstone, in: .common, by: manager)
                == .accept(.insert(fields: fields)))
        let team2 = Mutation(operation: .put, kind: .team, id: team, fields: Array("{\"name\":\"t\"}".utf8))
        guard case .reject = MutationRules.decide(team2, current: .tombstone, in: .common, by: manager) else {
            Issue.record("a team came back")
            return
        }
    }

    @Test func nobodyIsFoundUnderAnothersAddress() {
        let me = UUID()
        for (email, isAccepted) in [("ana@example.com", true), ("boss@example.com", false)] {
            let fields = Array("{\"name\":\"Ana\",\"email\":\"\(email)\"}".utf8)
            let decision = MutationRules.decide(
                Mutation(operation: .put, kind: .personLookup, id: me, fields: fields), current: nil, in: .common,
                by: Author(Access(.person(.worker)), person: me, email: "ana@example.com"))
            if case .accept = decision { #expect(isAccepted) } else { #expect(!isAccepted) }
        }
    }

    @Test func realmsHaveClasses() throws {
        let id = UUID()
        let cases: [(String, RealmClass)] = [
            ("/users", .users), ("/users/ana@example.com", .user), ("/users/Ana@example.com", .system),
            ("/common", .common), ("/common/x", .system), ("/manager", .manager), ("/teams/\(id.text)", .team(id)),
            ("/teams/\(id.uuidString)", .system), ("/teams", .system), ("/shares/\(id.text)", .share(id)),
            ("/catalogues/\(id.text)", .catalogue(id)), ("/polls", .system), ("/sessions/\(id.text)", .system),
        ]
        for (text, expected) in cases {
            #expect(try #require(RealmPath(text)).realmClass == expected, "\(text)")
        }
    }
}

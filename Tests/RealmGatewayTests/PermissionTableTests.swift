import Access
import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// Every cell of the permission table: class of realm, standing, relation, kind, operation and field, compared with
/// ``PermissionTable``; and related rules.
@Suite(.ownThreads) struct PermissionTableTests {
    static let team = UUID()
    static let classes: [(name: String, realm: RealmClass)] = [
        ("users", .users), ("user", .user), ("catalogue", .catalogue(UUID())), ("common", .common),
        ("manager", .manager), ("archive", .archive), ("team", .team(team)), ("share", .share(UUID())),
        ("system", .system),
    ]
    static let standings: [AccessPrincipal] = [
        .person(.admin), .person(.manager), .person(.worker), .integration,
    ]

    @Test func everyReadPermissionMatches() {
        var cellCount = 0
        for (name, realm) in Self.classes {
            for standing in Self.standings {
                for relation in Relation.allCases {
                    let access = Access(standing, relation)
                    let expected = PermissionTable.mayRead(realm, access)
                    #expect(Permissions.mayRead(realm, access) == expected, "\(name) \(standing) \(relation)")
                    cellCount += 1
                }
            }
        }
        #expect(cellCount == 9 * 4 * 5)
    }

    @Test func everyWritePermissionMatches() {
        var cellCount = 0
        var allowedCount = 0
        for (_, realm) in Self.classes {
            for standing in Self.standings {
                for relation in Relation.allCases {
                    let counts = cells(of: realm, Access(standing, relation))
                    cellCount += counts.all
                    allowedCount += counts.allowed
                }
            }
        }
        #expect(cellCount > 80_000)
        #expect(allowedCount > 600)
    }

    /// Compares the decision about each cell.
    private func cells(of realm: RealmClass, _ access: Access) -> (all: Int, allowed: Int) {
        var cellCount = 0
        var allowedCount = 0
        for kind in Kind.allCases {
            for isOwn in [true, false] {
                let object = WriteTarget(kind, isOwn: isOwn)
                for operation in Mutation.Operation.allCases {
                    for fields in (kind.fieldNames + ["nonsense"]).map({ [$0] }) + [[]] {
                        let expected = PermissionTable.problem(of: operation, object, fields: fields, in: realm, access)
                        let problem = Permissions.objection(to: operation, object, fields: fields, in: realm, access)
                        if problem?.code != expected {
                            Issue.record("\(realm) \(access) \(object) \(operation) \(fields)")
                        }
                        cellCount += 1
                        if expected == nil { allowedCount += 1 }
                    }
                }
            }
        }
        return (cellCount, allowedCount)
    }

    @Test func everyRoleChangeMatches() {
        for standing in Self.standings {
            for isOwn in [true, false] {
                for before in Role.allCases {
                    for after in Role.allCases {
                        let object = WriteTarget(.person, isOwn: isOwn, roleBefore: before, roleAfter: after)
                        let isAllowed =
                            Permissions.objection(
                                to: .patch, object, fields: ["role"], in: .common, Access(standing)) == nil
                        let expected = PermissionTable.mayMake(after, of: before, isOwn: isOwn, standing)
                        #expect(isAllowed == expected, "\(standing) \(isOwn) \(before) \(after)")
                    }
                }
            }
        }
    }

    /// Shares result from shared items: no person creates one, not even as its owner.
    @Test func sharesCannotBePut() {
        let (ana, ben) = (UUID(), UUID())
        let id = Share.id(of: ana, with: ben)
        let fields = Array("{\"owner\":\"\(ana)\",\"recipient\":\"\(ben)\"}".utf8)
        let put = Mutation(operation: .put, kind: .share, id: id, fields: fields)
        for realm in Self.classes.map(\.realm) + [.share(id)] {
            for standing in Self.standings {
                for relation in Relation.allCases {
                    for current in [nil, StoredObject.tombstone, .live(fields: fields)] {
                        #expect(throws: MutationProblem.self, "\(realm) \(standing) \(relation)") {
                            try MutationRules.decide(
                                put, current: current, in: realm, by: Author(Access(standing, relation), person: ana))
                        }
                    }
                }
            }
        }
    }

    @Test func sharedItemIDCombinesItemAndAnotherPerson() throws {
        let (ana, ben, item) = (UUID(), UUID(), UUID())
        let cases: [(recipient: UUID, id: UUID, isAccepted: Bool)] = [
            (ben, SharedItem.id(of: item, with: ben), true), (ben, UUID(), false),
            (ben, SharedItem.id(of: UUID(), with: ben), false), (ana, SharedItem.id(of: item, with: ana), false),
        ]
        for (recipient, id, isAccepted) in cases {
            let fields = "{\"kind\":\"Note\",\"item\":\"\(item.text)\",\"recipient\":\"\(recipient.text)\"}"
            let put = Mutation(operation: .put, kind: .sharedItem, id: id, fields: Array(fields.utf8))
            // An item can be shared again.
            for current in [nil, StoredObject.tombstone] {
                let author = Author(Access(.person(.worker), .owner), person: ana)
                do throws(MutationProblem) {
                    let change = try MutationRules.decide(put, current: current, in: .user, by: author)
                    #expect(isAccepted && change == .insert(fields: Array(fields.utf8)))
                } catch {
                    #expect(!isAccepted && error.code == .invalidField)
                }
            }
        }
    }

    @Test func personCannotCompleteATaskForAnother() {
        let (ana, ben) = (UUID(), UUID())
        let stored = StoredObject.live(fields: Array("{\"title\":\"t\"}".utf8))
        let cases: [(RealmClass, Access, isOpen: Bool)] = [
            (.user, Access(.person(.worker), .owner), false),
            (.team(Self.team), Access(.person(.manager), .member), false),
            // Managers may write any person in the managers' realm.
            (.manager, Access(.person(.manager)), true),
        ]
        for (realm, access, isOpen) in cases {
            for (value, isOwn) in [("\"\(ana)\"", true), ("null", true), ("\"\(ben)\"", false)] {
                let fields = Array("{\"isCompleted\":true,\"completedBy\":\(value)}".utf8)
                let patch = Mutation(operation: .patch, kind: .fieldTask, id: UUID(), fields: fields)
                do throws(MutationProblem) {
                    _ = try MutationRules.decide(
                        patch, current: stored, in: realm, by: Author(access, person: ana))
                    #expect(isOwn || isOpen, "\(realm) \(value)")
                } catch {
                    #expect(!isOwn && !isOpen && error.code == .invalidField)
                }
            }
        }
    }

    @Test func membershipIDCombinesPersonAndTeam() throws {
        let (person, team) = (try #require(UUID(uuidString: "01020304-0506-4708-890A-0B0C0D0E0F10")), UUID())
        let id = Membership.id(of: person, in: team)
        #expect(id.text.hasPrefix("01020304-0506-4708-") && id.text.hasSuffix(team.text.suffix(17)))
        #expect(Membership.ids(of: person).contains(id))
        #expect(!Membership.ids(of: UUID()).contains(id))
        let fields = Array("{\"person\":\"\(person)\",\"team\":\"\(team)\"}".utf8)
        for (object, isAccepted) in [(id, true), (UUID(), false)] {
            let change = try? MutationRules.decide(
                Mutation(operation: .put, kind: .membership, id: object, fields: fields), current: nil, in: .common,
                by: Author(Access(.person(.manager)), person: UUID()))
            #expect((change != nil) == isAccepted)
        }
    }

    @Test func membershipCanBeCreatedAgain() throws {
        let (person, team) = (UUID(), UUID())
        let fields = Array("{\"person\":\"\(person.text)\",\"team\":\"\(team.text)\"}".utf8)
        let put = Mutation(
            operation: .put, kind: .membership, id: Membership.id(of: person, in: team), fields: fields)
        let manager = Author(Access(.person(.manager)), person: UUID())
        #expect(
            try MutationRules.decide(put, current: .tombstone, in: .common, by: manager) == .insert(fields: fields))
        let team2 = Mutation(operation: .put, kind: .team, id: team, fields: Array("{\"name\":\"t\"}".utf8))
        #expect(throws: MutationProblem.self, "a deleted team was created again") {
            try MutationRules.decide(team2, current: .tombstone, in: .common, by: manager)
        }
    }

    @Test func lookupCannotHaveAnothersAddress() {
        let me = UUID()
        for (email, isAccepted) in [("ana@example.com", true), ("boss@example.com", false)] {
            let fields = Array("{\"name\":\"Ana\",\"email\":\"\(email)\"}".utf8)
            let change = try? MutationRules.decide(
                Mutation(operation: .put, kind: .personLookup, id: me, fields: fields), current: nil, in: .common,
                by: Author(Access(.person(.worker)), person: me, emails: ["ana@example.com"]))
            #expect((change != nil) == isAccepted)
        }
    }

    @Test func realmPathsHaveClasses() throws {
        let id = UUID()
        let cases: [(String, RealmClass)] = [
            ("/users", .users), ("/users/ana@example.com", .user), ("/users/Ana@example.com", .system),
            ("/common", .common), ("/common/x", .system), ("/manager", .manager),
            ("/archive", .archive), ("/archive/x", .system), ("/teams/\(id.text)", .team(id)),
            ("/teams/\(id.uuidString)", .team(id)), ("/teams", .system), ("/shares/\(id.text)", .share(id)),
            ("/catalogues/\(id.text)", .catalogue(id)), ("/polls", .system), ("/sessions/\(id.text)", .system),
        ]
        for (text, expected) in cases {
            #expect(try #require(RealmPath(text)).realmClass == expected, "\(text)")
        }
    }
}

import Access
import Essentials
import Foundation
import KindSchema
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// The permissions of random declarations, compared cell by cell with an independent evaluation of the file.
@Suite(.ownThreads) struct OwnKindPermissionTests {
    private static let fields = ["alpha", "beta", "gamma", "delta"]
    private static let readOnly: Set<String> = ["delta"]
    /// The realms in which there are such people, as `docs/apps/own-kinds.md` describes them.
    private static let homes = [
        "owner": ["user"], "member": ["team"], "manager": ["team", "common", "manager"], "person": ["common"],
    ]
    private static let realms: [(name: String, realm: RealmClass)] = [
        ("user", .user), ("team", .team(UUID())), ("common", .common), ("manager", .manager),
        ("-", .users), ("-", .catalogue(UUID())), ("-", .archive), ("-", .share(UUID())), ("-", .system),
    ]

    /// A permission of a declaration, and the realms that it names.
    private struct Rule {
        let who, may: [String]
        let realms, fields: [String]?

        init(in kindRealms: [String], _ random: inout SplitMix64) {
            who = random.subset(homes.keys.sorted().filter { !Set(homes[$0] ?? []).isDisjoint(with: kindRealms) })
            may = random.subset(["create", "change", "delete"])
            realms = random.happens(50) ? kindRealms : nil
            fields = random.happens(50) ? random.subset(OwnKindPermissionTests.fields.filter { $0 != "delta" }) : nil
        }

        var json: String {
            func list(_ values: [String]) -> String { "[" + values.map { "\"\($0)\"" }.joined(separator: ",") + "]" }
            let optional = [("realms", realms), ("fields", fields)].compactMap { name, values in
                values.map { ",\"\(name)\":\(list($0))" }
            }
            return "{\"who\":\(list(who)),\"may\":\(list(may))\(optional.joined())}"
        }
    }

    /// The problem according to the file.
    private static func expected(
        _ rules: [Rule], _ kindRealms: [String], _ operation: Mutation.Operation, exists: Bool, field: String?,
        in realm: String, _ access: Access
    ) -> MutationProblem.Code? {
        guard kindRealms.contains(realm) else { return .kindNotAllowed }
        if access.standing == .integration {
            return field.map { fields.contains($0) } == false ? .unknownField : nil
        }
        let isManager = access.standing == .person(.manager) || access.standing == .person(.admin)
        func isGranted(_ act: String, _ field: String?) -> Bool {
            rules.contains { rule in
                guard rule.may.contains(act), rule.realms?.contains(realm) != false else { return false }
                let isHere = rule.who.contains { who in
                    guard homes[who]?.contains(realm) == true else { return false }
                    switch who {
                    case "owner": return access.relation == .owner
                    case "member": return access.relation == .member
                    case "manager": return isManager
                    default: return true
                    }
                }
                guard isHere, let field else { return isHere }
                return rule.fields?.contains(field) ?? !readOnly.contains(field)
            }
        }
        let written = exists ? "change" : "create"
        guard isGranted(written, nil) || isGranted("delete", nil) else { return .kindNotAllowed }
        guard isGranted(operation == .delete ? "delete" : written, nil) else { return .operationNotAllowed }
        guard let field else { return nil }
        guard fields.contains(field) else { return .unknownField }
        return isGranted(written, field) ? nil : .fieldNotAllowed
    }

    @Test(arguments: Seeds.random(5, for: "own kinds' permissions"))
    func everyCellOfRandomDeclarationsMatches(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var (cellCount, allowedCount) = (0, 0)
        for _ in 0..<20 {
            let kindRealms = random.subset(KindDeclaration.RealmName.allCases.map(\.rawValue))
            let rules = (0..<Int(random.next() % 4)).map { _ in Rule(in: kindRealms, &random) }
            let properties = Self.fields.map { "\"\($0)\":{\"readOnly\":\(Self.readOnly.contains($0))}" }
            let file = """
                {"kinds":{"Thing":{"realms":[\(kindRealms.map { "\"\($0)\"" }.joined(separator: ","))],
                "properties":{\(properties.joined(separator: ","))},
                "permissions":[\(rules.map(\.json).joined(separator: ","))]}}}
                """
            let declaration = try #require(try EnvironmentKinds(try SchemaValue(Array(file.utf8))).kinds["Thing"])
            let kind = Kind.own(OwnKind(declaration, number: 1_000))
            for (name, realm) in Self.realms {
                for standing in PermissionTableTests.standings {
                    for relation in Relation.allCases {
                        let access = Access(standing, relation)
                        guard Permissions.mayRead(realm, access) else { continue }
                        for operation in Mutation.Operation.allCases {
                            for exists in [true, false] {
                                for field in [nil] + (Self.fields + ["omega"]).map(Optional.some) {
                                    let expected = Self.expected(
                                        rules, kindRealms, operation, exists: exists, field: field, in: name, access)
                                    let problem = Permissions.objection(
                                        to: operation, WriteTarget(kind, exists: exists),
                                        fields: field.map { [$0] } ?? [], in: realm, access)
                                    cellCount += 1
                                    if expected == nil { allowedCount += 1 }
                                    if problem?.code != expected {
                                        Issue.record("\(file) \(realm) \(access) \(operation) \(exists) \(field ?? "")")
                                        return
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        #expect(cellCount > 10_000 && allowedCount > 100, "\(allowedCount) of \(cellCount) cells are allowed")
    }
}

extension SplitMix64 {
    /// Returns at least one of some values, in their order.
    fileprivate mutating func subset(_ values: [String]) -> [String] {
        let chosen = values.filter { _ in happens(50) }
        return chosen.isEmpty ? [values[Int(next() % UInt64(values.count))]] : chosen
    }
}

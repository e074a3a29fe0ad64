import Access
import Essentials
import Foundation
import Model
import ProjectDocuments
import TestSupport
import Testing
import Yams

@testable import RealmGateway

/// An object with every field as raw JSON, to put with other values.
struct SchemaObject {
    let kind: Kind
    let fields: [String: String]
    let properties: [(name: String, value: Node)]
    let required: Set<String>
    let values: SchemaValues

    init(_ kind: Kind) throws {
        let schemas = try #require(try ProjectDocument("deploy/openapi.yaml").root["components"]?["schemas"])
        let schema = try #require(schemas[kind.rawValue])
        let file = projectFolder.appendingPathComponent("Tests/ModelTests/Golden/\(kind.rawValue).v1.json")
        let golden = try JSONObject(Array(try Data(contentsOf: file)))
        self.kind = kind
        fields = Dictionary(
            uniqueKeysWithValues: golden.members.map {
                ($0.key, String(decoding: golden.bytes[$0.value], as: UTF8.self))
            })
        properties = schema["properties"]?.members ?? []
        required = schema["required"]?.texts ?? []
        values = SchemaValues(schemas: schemas)
    }

    /// Returns the reason for rejecting a put with this value, by the gateway if clients may put such objects; `nil` if
    /// it is accepted.
    func problem(with field: String, _ value: String?) throws -> String? {
        var fields = fields
        fields[field] = value
        // A note has its author's id.
        let text = fields["author"].map { String($0.dropFirst().dropLast()) } ?? ""
        let person = UUID(uuidString: text) ?? UUID()
        let owner = Author(Access(.person(.worker), .owner), person: person, emails: [Self.email(fields)])
        for (author, standing) in [(owner, owner.access), (Author(Access(.integration)), Access(.integration))] {
            for realm in kind.row.realms.map(Self.realm) {
                let grant = Permissions.grant(WriteTarget(kind, isOwn: true), in: realm, standing)
                guard let grant, grant.operations.contains(.put), grant.fields.contains(field) else { continue }
                let own = fields.filter { grant.fields.contains($0.key) && Self.isOfDevices($0.key, kind) }
                let id = try Self.id(kind, own, person)
                let mutation = Mutation(operation: .put, kind: kind, id: id, fields: Self.json(own))
                do throws(MutationProblem) {
                    _ = try MutationRules.decide(mutation, current: nil, in: realm, by: author)
                } catch {
                    #expect([.invalidField, .invalidJSON].contains(error.code), "\(error)")
                    return error.detail
                }
            }
        }
        return kind.objection(to: Self.json(fields))
    }

    /// The golden file's status of an entry is one that only the server sets.
    private static func isOfDevices(_ field: String, _ kind: Kind) -> Bool { kind != .timeEntry || field != "status" }

    private static func email(_ fields: [String: String]) -> String {
        fields["email"].map { String($0.dropFirst().dropLast()) } ?? "ana@example.com"
    }

    private static func realm(_ name: RealmClass.Name) -> RealmClass {
        switch name {
        case .users: .users
        case .user: .user
        case .catalogue: .catalogue(UUID())
        case .common: .common
        case .manager: .manager
        case .archive: .archive
        case .team: .team(UUID())
        case .share: .share(UUID())
        case .system: .system
        }
    }

    /// The id that the rules require.
    private static func id(_ kind: Kind, _ fields: [String: String], _ person: UUID) throws -> UUID {
        func id(_ name: String) -> UUID? {
            UUID(uuidString: fields[name].map { String($0.dropFirst().dropLast()) } ?? "")
        }
        switch kind {
        case .membership:
            if let person = id("person"), let team = id("team") { return Membership.id(of: person, in: team) }
        case .sharedItem:
            if let item = id("item"), let recipient = id("recipient") {
                return SharedItem.id(of: item, with: recipient)
            }
        default: break
        }
        return person
    }

    private static func json(_ fields: [String: String]) -> [UInt8] {
        Array(("{" + fields.sorted { $0.key < $1.key }.map { "\"\($0)\":\($1)" }.joined(separator: ",") + "}").utf8)
    }
}

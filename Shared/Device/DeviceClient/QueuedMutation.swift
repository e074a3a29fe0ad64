import Essentials
import FoundationEssentials
public import Model

/// A mutation with its number, with which it is sent until the server responds, and again if the server has lost it.
public struct QueuedMutation: Equatable, Codable, Sendable {
    /// The client's number, from 1 without gaps.
    public internal(set) var sequence: Int64
    /// The realm of the object.
    public let realm: RealmPath
    /// The mutation.
    public let mutation: Mutation
    /// The server's latest result; `nil` before the first one.
    public internal(set) var outcome: MutationOutcome?

    init(sequence: Int64, realm: RealmPath, mutation: Mutation) {
        self.sequence = sequence
        self.realm = realm
        self.mutation = mutation
    }

    /// The object that it changes.
    public var address: ObjectAddress { ObjectAddress(realm, ObjectID(kind: mutation.kind, id: mutation.id)) }

    /// Whether the server's latest result is a rejection.
    public var isRejected: Bool {
        if case .rejected = outcome { true } else { false }
    }

    /// The mutation as JSON for a request.
    var json: [UInt8] {
        var bytes = Array("{\"sequence\":\(sequence),\"realm\":".utf8)
        JSONText.append(realm.description, to: &bytes)
        bytes.append(contentsOf: ",\"op\":\"\(mutation.operation.rawValue)\"".utf8)
        bytes.append(contentsOf: ",\"kind\":\"\(mutation.kind.rawValue)\",\"id\":\"\(mutation.id.text)\"".utf8)
        if let fields = mutation.fields {
            bytes.append(contentsOf: ",\"fields\":".utf8)
            bytes.append(contentsOf: fields)
        }
        if let position = mutation.position { bytes.append(contentsOf: ",\"position\":\(position)".utf8) }
        if mutation.restores { bytes.append(contentsOf: ",\"restore\":true".utf8) }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    private enum CodingKeys: CodingKey {
        case sequence, realm, operation, kind, id, fields, position, restores, outcome
    }

    /// Decodes a mutation from its stored form.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        sequence = try container.decode(Int64.self, forKey: .sequence)
        realm = try container.decode(RealmPath.self, forKey: .realm)
        mutation = Mutation(
            operation: try container.decode(Mutation.Operation.self, forKey: .operation),
            kind: try container.decode(Kind.self, forKey: .kind), id: try container.decode(UUID.self, forKey: .id),
            fields: try container.decodeIfPresent(String.self, forKey: .fields).map { Array($0.utf8) },
            position: try container.decodeIfPresent(Int64.self, forKey: .position),
            restores: try container.decodeIfPresent(Bool.self, forKey: .restores) ?? false)
        outcome = try container.decodeIfPresent(MutationOutcome.self, forKey: .outcome)
    }

    /// Encodes the fields as one string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(sequence, forKey: .sequence)
        try container.encode(realm, forKey: .realm)
        try container.encode(mutation.operation, forKey: .operation)
        try container.encode(mutation.kind, forKey: .kind)
        try container.encode(mutation.id, forKey: .id)
        try container.encodeIfPresent(mutation.fields.map { String(decoding: $0, as: UTF8.self) }, forKey: .fields)
        try container.encodeIfPresent(mutation.position, forKey: .position)
        if mutation.restores { try container.encode(true, forKey: .restores) }
        try container.encodeIfPresent(outcome, forKey: .outcome)
    }
}

/// A request with mutations. Only one is valid at a time: the next one replaces it, and a late response to it is
/// ignored.
public struct QueueRequest: Equatable, Sendable {
    let number: Int
    /// The number of resets of realms when the request was made.
    let resetCount: Int
    /// Whether the first mutation is already completed: the request queries whether the server still has its result.
    let isQuery: Bool
    /// The mutations, in order.
    public let mutations: [QueuedMutation]
    /// The body of `POST /v1/mutations`.
    public let body: [UInt8]
}

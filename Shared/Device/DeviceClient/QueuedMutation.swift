import Essentials
import FoundationEssentials
public import Model

/// A mutation with its number: under it, it is sent until it is answered, and again if the server has lost it.
public struct QueuedMutation: Equatable, Codable, Sendable {
    /// The client's numbers begin at 1 and have no gaps.
    public internal(set) var sequence: Int64
    /// The realm of the object.
    public let realm: RealmPath
    /// What is to be done.
    public let mutation: Mutation
    /// What the server decided, the last time it was told; `nil` while it has not been.
    public internal(set) var outcome: MutationOutcome?

    init(sequence: Int64, realm: RealmPath, mutation: Mutation) {
        self.sequence = sequence
        self.realm = realm
        self.mutation = mutation
    }

    /// The object it changes.
    public var address: ObjectAddress { ObjectAddress(realm, ObjectID(kind: mutation.kind, id: mutation.id)) }

    /// Where the object is after it, once it is known to be accepted.
    var acceptedPosition: Int64? {
        if case .accepted(let position) = outcome { position } else { nil }
    }

    /// Whether the server refused it, the last time it was told.
    public var isRejected: Bool {
        if case .rejected = outcome { true } else { false }
    }

    /// The mutation as a request has it.
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
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    private enum CodingKeys: CodingKey { case sequence, realm, operation, kind, id, fields, position, outcome }

    /// Reads what ``encode(to:)`` wrote.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        sequence = try container.decode(Int64.self, forKey: .sequence)
        realm = try container.decode(RealmPath.self, forKey: .realm)
        mutation = Mutation(
            operation: try container.decode(Mutation.Operation.self, forKey: .operation),
            kind: try container.decode(Kind.self, forKey: .kind), id: try container.decode(UUID.self, forKey: .id),
            fields: try container.decodeIfPresent(String.self, forKey: .fields).map { Array($0.utf8) },
            position: try container.decodeIfPresent(Int64.self, forKey: .position))
        outcome = try container.decodeIfPresent(MutationOutcome.self, forKey: .outcome)
    }

    /// Writes the fields as one string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(sequence, forKey: .sequence)
        try container.encode(realm, forKey: .realm)
        try container.encode(mutation.operation, forKey: .operation)
        try container.encode(mutation.kind, forKey: .kind)
        try container.encode(mutation.id, forKey: .id)
        try container.encodeIfPresent(mutation.fields.map { String(decoding: $0, as: UTF8.self) }, forKey: .fields)
        try container.encodeIfPresent(mutation.position, forKey: .position)
        try container.encodeIfPresent(outcome, forKey: .outcome)
    }
}

/// One request of mutations. There is one at a time: the next one takes its place, and a late answer to it then says
/// nothing.
public struct QueueRequest: Equatable, Sendable {
    let number: Int
    /// How often realms had been given anew when it was made.
    let resetCount: Int
    /// Its first mutation has an answer already: it asks whether the server still has that.
    let isQuestion: Bool
    /// The mutations, in their order.
    public let mutations: [QueuedMutation]
    /// The body of `POST /v1/mutations`.
    public let body: [UInt8]
}

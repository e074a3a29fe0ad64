import DeviceClient
import Essentials
import FoundationEssentials
import Model

/// The fields of a simulated object; null and absent are equivalent.
typealias SimulatedFields = [String: Int]

/// A minimal server: objects in realms, a counter, and the results of each client.
struct SimulatedServer {
    struct Object: Equatable {
        var position: Int64
        /// The fields; `nil` for a tombstone.
        var fields: SimulatedFields?
        /// The object as devices store it.
        var held: DeviceObject?

        init(position: Int64, fields: SimulatedFields?) {
            self.position = position
            self.fields = fields
            held = fields.map { DeviceObject(position: position, fields: SimulatedServer.bytes($0)) }
        }
    }

    struct Client {
        var results: [MutationOutcome] = []
        var processed: [Mutation] = []
        var expected: Int64 { Int64(results.count) + 1 }
    }

    /// Fields that are always rejected.
    static let rejectedFields: SimulatedFields = ["title": -1]

    var generation: Int64 = 1
    private(set) var position: Int64 = 0
    private(set) var compactedPosition: Int64 = 0
    private(set) var realms: [RealmPath: [ObjectID: Object]]
    var permitted: Set<RealmPath>
    private(set) var clients: [UUID: Client] = [:]

    init(realms: [RealmPath]) {
        self.realms = Dictionary(uniqueKeysWithValues: realms.map { ($0, [:]) })
        permitted = Set(realms)
    }

    /// The content that the person can access now.
    var content: [RealmPath: RealmContent] {
        var content: [RealmPath: RealmContent] = [:]
        for path in permitted { content[path] = realms[path]?.compactMapValues(\.held) }
        return content
    }

    /// Removes tombstones, so that a device that was offline for long cannot continue.
    mutating func compact() {
        compactedPosition = position
        for path in realms.keys { realms[path] = realms[path]?.filter { $0.value.fields != nil } }
    }

    /// Restores a backup and records the restore.
    mutating func restore(_ backup: SimulatedServer) {
        let (generation, permitted) = (generation, permitted)
        self = backup
        self.generation = generation + 1
        self.permitted = permitted
    }

    /// Writes as another user.
    mutating func write(_ fields: SimulatedFields?, to object: ObjectID, in realm: RealmPath) {
        position += 1
        realms[realm]?[object] = Object(position: position, fields: fields)
    }

    // MARK: Mutations

    /// Applies each number once and in order.
    mutating func apply(_ request: QueueRequest, of id: UUID) -> QueueResponse {
        var client = clients[id] ?? Client()
        var next = client.expected
        for item in request.mutations {
            guard item.sequence <= next else { return .gap(expectedSequence: client.expected) }
            next = max(next, item.sequence + 1)
        }
        var outcomes: [Int64: MutationOutcome] = [:]
        for item in request.mutations {
            if item.sequence == client.expected {
                client.processed.append(item.mutation)
                client.results.append(process(item.mutation, in: item.realm))
            }
            outcomes[item.sequence] = client.results[Int(item.sequence) - 1]
        }
        clients[id] = client
        return .results(outcomes, expectedSequence: client.expected)
    }

    private mutating func process(_ mutation: Mutation, in realm: RealmPath) -> MutationOutcome {
        let id = ObjectID(kind: mutation.kind, id: mutation.id)
        guard permitted.contains(realm) else { return .rejected(code: "not-permitted", detail: "") }
        let given = mutation.fields.map(Self.fields)
        if given?["title"] == Self.rejectedFields["title"] { return .rejected(code: "invalid-field", detail: "") }
        let stored = realms[realm]?[id]
        switch (mutation.operation, stored) {
        case (.put, nil): return change(id, given, in: realm)
        case (.patch, nil): return .rejected(code: "unknown-object", detail: "")
        case (.delete, nil): return .accepted(position: 0)
        case (.delete, .some(let object)):
            return object.fields == nil ? .accepted(position: object.position) : change(id, nil, in: realm)
        case (.put, .some(let object)), (.patch, .some(let object)):
            guard let old = object.fields else { return .rejected(code: "deleted", detail: "") }
            let new = mutation.operation == .put ? given ?? [:] : old.merging(given ?? [:]) { $1 }
            return old == new ? .accepted(position: object.position) : change(id, new, in: realm)
        }
    }

    private mutating func change(_ id: ObjectID, _ fields: SimulatedFields?, in realm: RealmPath) -> MutationOutcome {
        write(fields, to: id, in: realm)
        return .accepted(position: position)
    }

    // MARK: Fields

    static func bytes(_ fields: SimulatedFields) -> [UInt8] {
        let members = fields.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\($0.value)" }
        return Array("{\(members.joined(separator: ","))}".utf8)
    }

    static func fields(_ bytes: [UInt8]) -> SimulatedFields {
        guard let object = try? JSONObject(bytes) else { return ["unreadable": 1] }
        return object.members.reduce(into: [:]) { fields, member in
            fields[member.key] = Int(String(decoding: bytes[member.value], as: UTF8.self))
        }
    }
}

import Algorithms
import Essentials
import FoundationEssentials
import Kafka
import Model
import Postgres
import Realms
import Work

/// Events of one environment: every object is written twice, in an order that mixes realms, with fields of about 480
/// bytes.
final class BenchEvents: Sendable {
    struct Item: Sendable {
        let key: ObjectKey
        let path: RealmPath
        let position: Int64
        let fields: [UInt8]
    }

    let environment: EnvironmentID
    let items: [Item]

    init(_ environment: EnvironmentID, count: Int, realms: Int = 1_000, on conninfo: String) throws {
        self.environment = environment
        var connection = try Connection(conninfo)
        var directory = RealmDirectory()
        let paths = try (0..<realms).map { try RealmPath.user("u\($0)@bench.example") }
        let ids = try directory.ids(of: paths, in: environment, create: true, on: &connection)
        var random = SplitMix64(seed: UInt64(environment.rawValue))
        var objects: [(path: RealmPath, key: ObjectKey)] = []
        for index in 0..<count / 2 {
            let path = paths[index % realms]
            let id = UUID(
                uuid: unsafe withUnsafeBytes(of: (random.next(), random.next())) { unsafe $0.load(as: uuid_t.self) })
            objects.append((path, ObjectKey(realm: ids[path] ?? 0, kind: .timeEntry, id: id)))
        }
        var items: [Item] = []
        items.reserveCapacity(count)
        for pass in 0..<2 {
            if pass == 1 { objects.shuffle(using: &random) }
            for (path, key) in objects {
                let position = Int64(items.count + 1)
                items.append(Item(key: key, path: path, position: position, fields: try Self.fields(position)))
            }
        }
        self.items = items
    }

    /// As they are stored and published.
    private static func fields(_ number: Int64) throws -> [UInt8] {
        let text = """
            {"text":"Work on ticket \(number)","status":"draft","timeType":"duration","entryDate":"2015-03-30",\
            "reporting":[{"node":"7b8b6a0e-8f43-5c0f-9f4c-2b2c7d9d1b11",\
            "context":"0d5a3c53-0f5e-5a55-8d53-3b8c9b0f0a01"},\
            {"node":"c1b1f7f4-3e3b-5a51-a8a4-1f4f0c2d6e22","context":"5f0f5cf0-5b0e-5b0e-9a90-6a1e7d0b0b02"},\
            {"node":"e9d3a6c8-4d4c-5d52-b9b5-2a5a1d3e7f33","context":"9a1b2c3d-4e5f-5a6b-8c7d-8e9f0a1b2c03"}],\
            "createdOn":"2015-03-30","durationSeconds":\(number % 28_800),"submitRequested":false}
            """
        return try CanonicalJSON(text).bytes
    }

    /// Statements that write the events in batches, as the worker does: the newest of an object, sorted by key.
    func batches(of size: Int) throws -> [[Statement]] {
        try items.chunks(ofCount: size).map { page in
            var newest: [ObjectKey: Item] = [:]
            for item in page { newest[item.key] = item }
            let sorted = newest.values.sorted {
                ($0.key.realm, $0.key.id.uuidString) < ($1.key.realm, $1.key.id.uuidString)
            }
            var batch = CopyBatch(environment: environment, fieldsCapacity: size * 520)
            for item in sorted {
                try unsafe item.fields.withUnsafeBytes { bytes in
                    try unsafe batch.append(item.key, source: item.position, json: bytes)
                }
            }
            return batch.statements
        }
    }

    /// Writes items, each of an object of its own, as a device's edits, and leaves the tables as after some rest.
    func store(_ items: some RandomAccessCollection<Item>, on connection: inout Connection) throws {
        var batch = WriteBatch(environment: environment)
        for (index, item) in items.enumerated() {
            batch.put(item.key, try CanonicalJSON(item.fields), decision: 0, isEdit: true)
            guard (index + 1) % Self.storeCountMax == 0 || index + 1 == items.count else { continue }
            _ = try batch.commit(on: &connection)
            batch = WriteBatch(environment: environment)
        }
        try connection.runScript("CHECKPOINT")
    }

    private static let storeCountMax = 5_000

    /// Puts the events into a topic as the relay would.
    func produce(to topic: String, brokers: String) throws {
        var producer = try Producer(brokers: brokers)
        var outlet = EventWriter(environment: environment, generation: 1, epoch: 1)
        let target = Topic(
            name: topic, key: .objectID, partitions: 1, retention: .seconds(86_400))
        let now = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000))
        for item in items {
            let object = PublishedObject(
                realm: item.path, kind: .timeEntry, id: item.key.id, position: item.position,
                editPosition: item.position, time: now)
            try unsafe item.fields.withUnsafeBytes {
                try unsafe outlet.send(object, to: target, json: $0, tag: 0, through: &producer)
            }
        }
        guard producer.flush(waitMax: .seconds(120)) else {
            throw BenchPlace.Missing(description: "the broker is too slow")
        }
    }

    /// Tells the group of a topic that it has begun the topic's epoch, so that it does not begin it again.
    func begin(_ topic: String, partitions: Int, on connection: inout Connection) throws {
        let numbers = (0..<partitions).map(Int32.init)
        try connection.run(
            """
            INSERT INTO pipeline.progress (group_name, topic, partition, epoch)
            SELECT \(topic), \(topic), p, 1 FROM unnest(\(numbers)) p
            """)
    }
}

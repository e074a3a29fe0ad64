import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Objects of one environment, in an order that mixes realms, with fields of about 480 bytes.
final class BenchObjects: Sendable {
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
        for index in 0..<count {
            let path = paths[index % realms]
            objects.append((path, ObjectKey(realm: ids[path] ?? 0, kind: .timeEntry, id: random.id())))
        }
        objects.shuffle(using: &random)
        items = try objects.enumerated().map { index, object in
            let position = Int64(index + 1)
            return Item(key: object.key, path: object.path, position: position, fields: try Self.fields(position))
        }
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

    /// Writes them as a device's edits, and leaves the tables as after some rest.
    func store(on connection: inout Connection) throws {
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
}

import Essentials
import Model
import ObjectStore
import Postgres

/// Time entries of one environment with fields of about 480 bytes, in an order that mixes realms.
struct BenchObjects: Sendable {
    let environment: EnvironmentID
    let items: [(key: ObjectKey, path: RealmPath, position: Int64, fields: [UInt8])]

    init(_ environment: EnvironmentID, count: Int, realms: Int = 1_000, on connection: inout Connection) throws {
        self.environment = environment
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
            return (object.key, object.path, position, try Self.fields(position))
        }
    }

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

    /// Writes the objects as edits of devices, and a checkpoint.
    func store(on connection: inout Connection) throws {
        for start in stride(from: 0, to: items.count, by: Self.batchCountMax) {
            var batch = WriteBatch(environment: environment)
            for item in items[start..<min(start + Self.batchCountMax, items.count)] {
                batch.put(item.key, try CanonicalJSON(item.fields), decision: 0, isEdit: true)
            }
            _ = try batch.commit(on: &connection)
        }
        try connection.runScript("CHECKPOINT")
    }

    private static let batchCountMax = 5_000
}

import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import PowerSyncModel
import TestSupport
import Testing

@testable import RealmGateway

private let person = "ana@example.com"

/// The histories of the transcripts in a gateway's database: its own lines lead to the tables that the real client core
/// had.
@Suite(.ownThreads) struct BucketHistoryTests {
    /// Without the transcripts of errors of a server: of these there is no history.
    private static let names = BucketTranscript.names.filter { name in
        !["10-", "12-", "13-", "16-", "18-", "19-", "21-"].contains(String(name.prefix(3)))
    }

    /// A gateway with a database that the lines of a transcript describe.
    private struct History {
        let fixture: GatewayFixture
        /// The objects of each realm, as in the lines.
        private var stored: [RealmPath: [ObjectKey: String]] = [:]
        private var generation: Int64?
        private var teams: Set<UUID> = []

        init(_ fixture: GatewayFixture) { self.fixture = fixture }

        /// Writes the content of the lines, with one transaction for each line.
        ///
        /// - Parameter isReset: The device has the realms already: a CLEAR follows from the compaction floor.
        mutating func write(_ lines: ArraySlice<[UInt8]>, isReset: Bool) throws {
            for line in lines {
                let object = try JSONSerialization.jsonObject(with: Data(line)) as? [String: Any]
                guard let (key, value) = object?.first, let value = value as? [String: Any] else { continue }
                switch key {
                case "checkpoint":
                    let names = try Self.names(value["buckets"])
                    try setGeneration(of: names)
                    let paths = try Set(names.map(Self.path))
                    for team in teams where !paths.contains(.team(team)) { try leave(team) }
                    try open(paths)
                case "checkpoint_diff":
                    try open(Set(try Self.names(value["updated_buckets"]).map(Self.path)))
                    for name in value["removed_buckets"] as? [String] ?? [] {
                        if let team = Self.team(try Self.path(name)) { try leave(team) }
                    }
                case "data": try write(value, isReset: isReset)
                default: break
                }
            }
        }

        private mutating func write(_ value: [String: Any], isReset: Bool) throws {
            let path = try Self.path(try #require(value["bucket"] as? String))
            let number = try fixture.realm(path)
            var (puts, deletions): ([ObjectKey: String], Set<ObjectKey>) = ([:], [])
            var clears = false
            for item in value["data"] as? [[String: Any]] ?? [] {
                let operation = item["op"] as? String
                if operation == "CLEAR" { clears = true }
                guard let type = item["object_type"] as? String, let row = item["object_id"] as? String else {
                    continue
                }
                let id = try #require(UUID(uuidString: String(row.prefix(36))))
                let key = ObjectKey(realm: number, kind: try #require(Kind(rawValue: type)), id: id)
                if operation == "PUT" {
                    puts[key] = item["data"] as? String
                    deletions.remove(key)
                } else {
                    (puts[key], _) = (nil, deletions.insert(key))
                }
            }
            let held = stored[path] ?? [:]
            if clears { deletions.formUnion(Set(held.keys).subtracting(puts.keys)) }
            let (changed, deleted) = (puts.filter { held[$0.key] != $0.value }, deletions.filter { held[$0] != nil })
            try fixture.write { batch in
                for (key, fields) in changed { batch.put(key, try CanonicalJSON(fields), decision: 0) }
                for key in deleted { batch.delete(key, decision: 0) }
            }
            stored[path] = held.merging(puts) { $1 }.filter { !deletions.contains($0.key) }
            guard clears, isReset else { return }
            try fixture.withDatabase { [environment = fixture.environment] connection in
                let outcome = try Compaction.step(
                    environment, keep: .seconds(-60), countMax: 1000, on: &connection)
                try #require(outcome != .locked)
            }
        }

        private mutating func setGeneration(of names: [String]) throws {
            guard let text = names.first?.prefix(while: { $0 != ":" }), let found = Int64(text) else { return }
            defer { generation = found }
            guard let generation, generation != found else { return }
            try fixture.withDatabase { connection in
                _ = try connection.run("UPDATE realm.environment SET generation = generation + 1, position = 1 << 40")
            }
        }

        private mutating func open(_ paths: Set<RealmPath>) throws {
            for path in paths {
                guard let team = Self.team(path), teams.insert(team).inserted else { continue }
                try fixture.makeTeam(team)
                try fixture.add(try fixture.person(person), to: team)
            }
        }

        private mutating func leave(_ team: UUID) throws {
            teams.remove(team)
            try fixture.remove(try fixture.person(person), from: team)
        }

        private static func names(_ buckets: Any?) throws -> [String] {
            try #require(buckets as? [[String: Any]]).map { try #require($0["bucket"] as? String) }
        }

        private static func team(_ path: RealmPath) -> UUID? {
            let text = path.description
            return text.hasPrefix("/teams/") ? UUID(uuidString: String(text.dropFirst(7))) : nil
        }

        private static func path(_ bucket: String) throws -> RealmPath {
            try #require(RealmPath(String(bucket.drop { $0 != ":" }.dropFirst())))
        }
    }

    /// Steps of a transcript, on a real stream.
    ///
    /// Lines without a consistent state are written with the next one: the gateway's device would display it already.
    private struct Player {
        let device: BucketDevice
        var transcript: BucketTranscript
        var history: History
        private var stream: Task<Void, any Error>?
        private var connectionCount = 0
        private var subscriptions: [String]?
        /// Whether the device chooses the numbers.
        private var choosesNumber = false
        /// The number for which the transcript's device waits.
        private var awaited: String?
        /// The lines that were written, and those that the steps have reached.
        private var (written, reached) = (0, 0)

        init(_ name: String, _ fixture: GatewayFixture) async throws {
            // The first login creates the person.
            try await BucketDevice(fixture, person).sync()
            device = try await BucketDevice(fixture, person)
            transcript = try BucketTranscript(name, person: person)
            history = History(fixture)
        }

        mutating func play(_ step: [String: Any], _ label: String) async throws {
            if let start = step["start"] as? [String: Any] {
                connectionCount += 1
                choosesNumber = start["checkpoint_mode"] as? String == "requests"
                let streams = (step["request"] as? [String: Any])?["streams"] as? [String: Any]
                subscriptions = (streams?["subscriptions"] as? [[String: Any]])?.compactMap {
                    ($0["parameters"] as? [String: String])?["path"]
                }
            }
            for _ in 0..<transcript.recordWrites(step) { await device.write() }
            awaited = step["writeCheckpoint"] as? String ?? awaited
            reached = (step["lines"] as? [Int])?[1] ?? reached
            if transcript.lines[written..<reached].last?.starts(with: Array("{\"checkpoint_complete\"".utf8)) == true {
                try await follow(label)
            }
            if let expected = step["expect"] as? [String: Any] {
                #expect(transcript.differences(await device.model, expected) == [], "\(label)")
            }
            if step["stop"] != nil { try await stop() }
        }

        /// Writes the lines, and waits until the device has everything.
        private mutating func follow(_ label: String) async throws {
            let lines = transcript.lines[written..<reached]
            if let number = awaited, lines.contains(where: { Self.number(in: $0) == number }) {
                _ = try await device.uploaded(as: choosesNumber ? number : nil)
                awaited = nil
            }
            try history.write(lines, isReset: connectionCount > 1)
            written = reached
            let count = stream == nil ? await device.lines.count : 0
            if stream == nil {
                stream = Task { [device, subscriptions] in
                    try await device.follow(
                        subscriptions: subscriptions ?? [], includesDefaults: subscriptions == nil
                    ) { _, _ in false }
                }
            }
            let position = try history.fixture.counter().position
            try await device.wait("\(label): position \(position)") { device in
                device.lines.count > count && device.model.position >= position
                    && device.lines.last?.hasPrefix("{\"checkpoint_complete\"") == true
            }
        }

        /// Ends the connection; lines that were not written are a download that is cut.
        mutating func stop() async throws {
            if let stream {
                stream.cancel()
                _ = await stream.result
            } else if written < reached {
                try history.write(transcript.lines[written..<reached], isReset: false)
                written = reached
                try await device.follow { _, line in line.hasPrefix("{\"data\"") }
            }
            stream = nil
        }

        private static func number(in line: [UInt8]) -> String? {
            let object = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: [String: Any]]
            return object?.values.first?["write_checkpoint"] as? String
        }
    }

    @Test(arguments: names) func gatewayLeadsToTheSameTables(name: String) async throws {
        try await withGateway(limits: .small) { fixture in
            var player = try await Player(name, fixture)
            for (index, step) in player.transcript.steps.enumerated() {
                try await player.play(step, "\(name), step \(index + 1)")
            }
            try await player.stop()
            #expect(await player.device.broken == [])
        }
    }
}

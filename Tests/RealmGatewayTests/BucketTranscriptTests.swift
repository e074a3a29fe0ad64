import Foundation
import PowerSyncModel
import TestSupport
import Testing

/// The model of a PowerSync client against transcripts that the real client core accepted: lines in, tables out.
@Suite(.ownThreads) struct BucketTranscriptTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "PowerSyncTranscripts")
    /// Priorities are the only feature that the gateway does not use.
    private static let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasSuffix(".json") && !$0.hasPrefix("14-") }.map { String($0.dropLast(5)) }.sorted()

    private struct Player {
        var model = BucketModel()
        let lines: [[UInt8]]
        /// Rows that only the app has written.
        var localIDs: Set<String> = []
        var isClosed = false

        mutating func play(_ step: [String: Any], _ label: String) throws {
            if step["start"] != nil {
                let sent = model.begin()
                isClosed = false
                if let request = step["request"] as? [String: Any],
                    let expected = request["buckets"] as? [[String: Any]]
                {
                    let expected = expected.map { "\($0["name"] ?? "") \($0["after"] ?? "")" }.sorted()
                    #expect(sent.map { "\($0["name"] ?? "") \($0["after"] ?? "")" }.sorted() == expected, "\(label)")
                }
            }
            for statement in step["sql"] as? [String] ?? [] {
                model.write()
                if let found = statement.firstMatch(of: /(?:VALUES \(|WHERE id = )'([^']+)'/) {
                    localIDs.insert(String(found.output.1))
                }
            }
            if let count = step["upload"] as? Int { model.waitingCount -= count }
            if let number = (step["writeCheckpoint"] as? String).flatMap({ Int64($0) }) {
                model.awaited = number
                model.displayIfPossible()
            }
            if let range = step["lines"] as? [Int] {
                for index in (range[0] - 1)..<range[1] where !isClosed {
                    do { try model.apply(lines[index]) } catch { isClosed = true }
                }
            }
            if let line = step["error"] as? Int {
                #expect(throws: BucketModel.StreamError.self, "\(label)") { try model.apply(lines[line - 1]) }
            }
            if let expected = step["expect"] as? [String: Any] { try check(expected, label) }
        }

        private func check(_ expected: [String: Any], _ label: String) throws {
            if let count = expected["completed"] as? Int { #expect(model.completedCount == count, "\(label)") }
            for (name, numbers) in expected["buckets"] as? [String: [Int64]] ?? [:] {
                let bucket = model.buckets[name]
                #expect([bucket?.applied, bucket?.last, bucket.map { Int64($0.sum) }] == numbers, "\(label): \(name)")
            }
            for (type, rows) in expected["tables"] as? [String: [[String: Any]]] ?? [:] {
                let shown = model.rows.filter { $0.key.type == type }
                let remote = rows.filter { row in
                    guard let id = row["id"] as? String else { return false }
                    return !localIDs.contains(id) || shown.keys.contains { $0.id == id }
                }
                #expect(
                    Set(shown.keys.map(\.id)) == Set(remote.compactMap { $0["id"] as? String }), "\(label): \(type)")
                for row in remote {
                    guard let id = row["id"] as? String, let data = shown.first(where: { $0.key.id == id })?.value,
                        model.awaited == nil || !localIDs.contains(id)
                    else { continue }
                    let fields = try JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any]
                    for (name, value) in row where name != "id" {
                        #expect(try Self.column(fields?[name]) == Self.column(value), "\(label): \(id) \(name)")
                    }
                }
            }
        }

        /// Returns the column that SQLite's JSON functions make of a value, as text.
        private static func column(_ value: Any?) throws -> String {
            switch value {
            case nil, is NSNull: return "NULL"
            case let number as NSNumber: return "\(number.doubleValue)"
            case let text as String:
                // The JSON text of a list or an object, whose members have no order.
                guard "[{".contains(text.prefix(1)), !text.isEmpty,
                    let value = try? JSONSerialization.jsonObject(with: Data(text.utf8))
                else { return text }
                return try column(value)
            case let value?:
                return String(
                    decoding: try JSONSerialization.data(withJSONObject: value, options: .sortedKeys), as: UTF8.self)
            }
        }
    }

    @Test(arguments: names) func modelHasTheExpectedTables(name: String) throws {
        let json =
            try JSONSerialization.jsonObject(
                with: Data(contentsOf: Self.folder.appending(path: name + ".json"))) as? [String: Any]
        let steps = try #require(json?["steps"] as? [[String: Any]])
        let text = try Data(contentsOf: Self.folder.appending(path: name + ".ndjson"))
        var player = Player(lines: text.split(separator: 10).map { Array($0) })
        for (index, step) in steps.enumerated() { try player.play(step, "\(name), step \(index + 1)") }
    }

    @Test func transcriptsExist() { #expect(Self.names.count == 20) }
}

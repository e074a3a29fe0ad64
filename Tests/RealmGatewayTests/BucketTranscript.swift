import Foundation
import PowerSyncModel
import Testing

/// A transcript that the real client core accepted: lines in, tables out.
struct BucketTranscript {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(
        path: "PowerSyncTranscripts")

    /// Priorities are the only feature that the gateway does not use.
    static let names = ((try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? [])
        .filter { $0.hasSuffix(".json") && !$0.hasPrefix("14-") }.map { String($0.dropLast(5)) }.sorted()

    let steps: [[String: Any]]
    let lines: [[UInt8]]
    /// Rows that only the app has written.
    private(set) var localIDs: Set<String> = []

    /// - Parameter person: Replaces the person of the transcript.
    init(_ name: String, person: String? = nil) throws {
        func text(_ ending: String) throws -> String {
            let text = try String(contentsOf: Self.folder.appending(path: name + ending), encoding: .utf8)
            return person.map { text.replacingOccurrences(of: "ana@acme.example", with: $0) } ?? text
        }
        let json = try JSONSerialization.jsonObject(with: Data(try text(".json").utf8)) as? [String: Any]
        steps = try #require(json?["steps"] as? [[String: Any]])
        lines = try text(".ndjson").split(separator: "\n").map { Array($0.utf8) }
    }

    /// Records the statements of a step; returns their count.
    mutating func recordWrites(_ step: [String: Any]) -> Int {
        let statements = step["sql"] as? [String] ?? []
        for statement in statements {
            if let found = statement.firstMatch(of: /(?:VALUES \(|WHERE id = )'([^']+)'/) {
                localIDs.insert(String(found.output.1))
            }
        }
        return statements.count
    }

    /// Returns the differences between the displayed rows and the expected tables.
    func differences(_ model: BucketModel, _ expected: [String: Any]) -> [String] {
        var differences: [String] = []
        for (type, rows) in expected["tables"] as? [String: [[String: Any]]] ?? [:] {
            let shown = model.rows.filter { $0.key.type == type }
            let remote = rows.filter { row in
                guard let id = row["id"] as? String else { return false }
                return !localIDs.contains(id) || shown.keys.contains { $0.id == id }
            }
            let (ids, expectedIDs) = (Set(shown.keys.map(\.id)), Set(remote.compactMap { $0["id"] as? String }))
            if ids != expectedIDs { differences.append("\(type): \(ids.sorted()), expected \(expectedIDs.sorted())") }
            for row in remote {
                guard let id = row["id"] as? String, let data = shown.first(where: { $0.key.id == id })?.value,
                    model.awaited == nil || !localIDs.contains(id)
                else { continue }
                let fields = try? JSONSerialization.jsonObject(with: Data(data.utf8)) as? [String: Any]
                for (name, value) in row where name != "id" {
                    let (column, expected) = (Self.column(fields?[name]), Self.column(value))
                    if column != expected { differences.append("\(id) \(name): \(column), expected \(expected)") }
                }
            }
        }
        return differences
    }

    /// Returns the column that SQLite's JSON functions make of a value, as text.
    private static func column(_ value: Any?) -> String {
        switch value {
        case nil, is NSNull: return "NULL"
        case let number as NSNumber: return "\(number.doubleValue)"
        case let text as String:
            // The JSON text of a list or an object, whose members have no order.
            guard "[{".contains(text.prefix(1)), !text.isEmpty,
                let value = try? JSONSerialization.jsonObject(with: Data(text.utf8))
            else { return text }
            return column(value)
        case let value?:
            let data = try? JSONSerialization.data(withJSONObject: value, options: .sortedKeys)
            return String(decoding: data ?? Data(), as: UTF8.self)
        }
    }
}

import Foundation

/// Rules of a stream of the PowerSync protocol that a client does not report, or reports by ending the stream.
struct BucketRules {
    /// With its newline, no line is longer.
    private static let lineBytesMax = 512_000

    private var isFirst = true
    /// The last announced position.
    private var position: Int64 = -1
    /// Whether everything up to the position was sent.
    private var isWhole = false
    private var writeCheckpoint: Int64?
    private var announced: Set<String> = []
    /// The highest number since the last consistent state.
    private var highest: Int64 = 0
    /// Buckets whose content was cleared since the last consistent state.
    private var cleared: Set<String> = []

    /// Returns the rules that a line breaks.
    mutating func broken(by line: [UInt8]) -> [String] {
        defer { isFirst = false }
        guard line.count < Self.lineBytesMax else { return ["\(line.count) bytes"] }
        guard let object = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any], object.count == 1,
            let (key, value) = object.first
        else { return ["no object: \(String(decoding: line.prefix(80), as: UTF8.self))"] }
        if isFirst, key != "checkpoint" { return ["\(key) is first"] }
        guard let value = value as? [String: Any] else { return key == "token_expires_in" ? [] : [key] }
        switch key {
        case "checkpoint", "checkpoint_diff": return announce(value, key)
        case "data": return data(value)
        case "checkpoint_complete":
            isWhole = true
            cleared = []
            defer { highest = 0 }
            return highest > position ? ["op_id \(highest) is displayed at \(position)"] : []
        default: return ["unknown line \(key)"]
        }
    }

    private mutating func announce(_ value: [String: Any], _ key: String) -> [String] {
        var broken: [String] = []
        let reached = (value["last_op_id"] as? String).flatMap { Int64($0) } ?? -2
        if reached < position { broken.append("\(key): position \(reached) after \(position)") }
        let number = (value["write_checkpoint"] as? String).flatMap { Int64($0) }
        if (number ?? 0) < (writeCheckpoint ?? 0) { broken.append("\(key): write checkpoint \(number ?? 0) falls") }
        (position, writeCheckpoint, isWhole) = (reached, number, false)
        let buckets = value["buckets"] ?? value["updated_buckets"]
        for bucket in buckets as? [[String: Any]] ?? [] {
            announced.insert(bucket["bucket"] as? String ?? "")
            // What has priority 0 is displayed while writes wait.
            if bucket["priority"] as? Int != 3 { broken.append("priority of \(bucket)") }
        }
        announced.subtract(value["removed_buckets"] as? [String] ?? [])
        return broken
    }

    private mutating func data(_ value: [String: Any]) -> [String] {
        let name = value["bucket"] as? String ?? ""
        var broken = announced.contains(name) ? [] : ["data of \(name) without an announcement"]
        for item in value["data"] as? [[String: Any]] ?? [] {
            let number = (item["op_id"] as? String).flatMap { Int64($0) } ?? 0
            switch item["op"] as? String {
            case "CLEAR": cleared.insert(name)
            case "PUT", "REMOVE":
                highest = max(highest, number)
                // Such an operation counts as a deletion.
                if number < 1 { broken.append("op_id \(number)") }
                // Such an operation is stored and not displayed.
                if isWhole, number <= position, !cleared.contains(name) {
                    broken.append("op_id \(number) at or below \(position)")
                }
                if item["data"] != nil, !(item["data"] is String) { broken.append("data is no string") }
            default: break
            }
        }
        return broken
    }
}

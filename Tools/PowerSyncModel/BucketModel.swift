import Foundation

/// A client of the PowerSync protocol, written from its specification: buckets of operations, and the rows that an app
/// sees. It shares no code with the gateway.
///
/// A value is the client's database together with its connection. A new connection keeps the database.
package struct BucketModel: Sendable {
    package struct Row: Hashable, Sendable {
        package let type: String
        package let id: String

        package init(type: String, id: String) {
            (self.type, self.id) = (type, id)
        }
    }

    /// An operation that a bucket has for a row.
    package struct Operation: Equatable, Sendable {
        package let number: Int64
        /// `nil`: removed.
        package let data: String?
    }

    package struct Bucket: Sendable {
        package fileprivate(set) var operations: [Row: Operation] = [:]
        /// The number of the last operation of the last line.
        package fileprivate(set) var last: Int64 = 0
        /// Operations up to here are displayed.
        package fileprivate(set) var applied: Int64 = 0
        package fileprivate(set) var sum: UInt32 = 0
    }

    /// An error that ends the stream.
    package struct StreamError: Error, CustomStringConvertible {
        package let description: String
    }

    /// A consistent state that was announced.
    private struct Checkpoint {
        let position: Int64
        let writeCheckpoint: Int64?
        let names: Set<String>
    }

    package private(set) var buckets: [String: Bucket] = [:]
    /// The displayed rows; local writes are on top of them.
    package private(set) var rows: [Row: String] = [:]
    /// Rows whose operations were removed, and which the display still has.
    private var removed: Set<Row> = []
    /// The uploads that wait.
    package var waitingCount = 0
    /// The number that the client waits for, and the number of the last consistent state.
    private var (target, reached): (Int64, Int64) = (0, 0)

    package private(set) var completedCount = 0
    package private(set) var position: Int64 = 0
    package private(set) var tokenExpiresIn: Int?
    /// The indexes of the subscriptions with errors, by stream.
    package private(set) var refused: [String: [Int]] = [:]
    /// The number in the last checkpoint or diff.
    package private(set) var writeCheckpoint: Int64?
    /// The announced buckets of this connection with their sums; `nil` before its checkpoint.
    private var announced: [String: UInt32]?
    /// The buckets that the request of this connection named.
    private var named: Set<String> = []
    /// The last consistent state, if local writes prevented its display.
    private var blocked: Checkpoint?
    /// Buckets that got data without an announcement before.
    package private(set) var unannounced: [String] = []

    package init() {}

    /// The announced buckets.
    package var names: Set<String> { Set((announced ?? [:]).keys) }

    /// The number that the client waits for: `.max` from a local write until the upload; `nil` once it has arrived.
    package var awaited: Int64? {
        get { target > reached ? target : nil }
        set { target = newValue ?? 0 }
    }

    /// Begins a connection; returns the buckets of the request.
    package mutating func begin() -> [[String: String]] {
        announced = nil
        (blocked, tokenExpiresIn) = (nil, nil)
        named = Set(buckets.keys)
        return buckets.sorted { $0.key < $1.key }.map { ["name": $0.key, "after": "\($0.value.last)"] }
    }

    /// Records a local write: no earlier number contains it.
    package mutating func write() {
        waitingCount += 1
        (target, reached) = (.max, 0)
    }

    package mutating func apply(_ line: [UInt8]) throws {
        guard let object = try? JSONSerialization.jsonObject(with: Data(line)) as? [String: Any], object.count == 1,
            let (key, value) = object.first
        else { throw StreamError(description: "not a JSON object with one member") }
        if key == "token_expires_in" {
            guard let seconds = value as? Int else { throw StreamError(description: "token_expires_in") }
            tokenExpiresIn = seconds
            return
        }
        guard let value = value as? [String: Any] else { throw StreamError(description: key) }
        switch key {
        case "checkpoint": try checkpoint(value)
        case "checkpoint_diff": try diff(value)
        case "data": try data(value)
        case "checkpoint_complete": try complete()
        default: break
        }
    }

    private static func number(_ value: Any?) throws -> Int64 {
        guard let text = value as? String, let number = Int64(text) else {
            throw StreamError(description: "expected a string")
        }
        return number
    }

    private static func sums(_ value: Any?) throws -> [String: UInt32] {
        guard let list = value as? [[String: Any]] else { throw StreamError(description: "buckets") }
        var sums: [String: UInt32] = [:]
        for item in list {
            guard let name = item["bucket"] as? String, let checksum = item["checksum"] as? Int else {
                throw StreamError(description: "missing field `checksum`")
            }
            guard (Int(Int32.min)...Int(UInt32.max)).contains(checksum) else {
                throw StreamError(description: "expected a 32-bit int")
            }
            sums[name] = UInt32(truncatingIfNeeded: checksum)
        }
        return sums
    }

    // MARK: Announcements

    private mutating func checkpoint(_ value: [String: Any]) throws {
        position = try Self.number(value["last_op_id"])
        let sums = try Self.sums(value["buckets"])
        if let list = value["streams"] as? [[String: Any]] {
            guard list.allSatisfy({ $0["errors"] is [Any] && $0["is_default"] is Bool && $0["name"] is String }) else {
                throw StreamError(description: "missing field `errors`")
            }
            refused = Dictionary(
                uniqueKeysWithValues: list.map { stream in
                    let errors = stream["errors"] as? [[String: Any]] ?? []
                    return (stream["name"] as? String ?? "", errors.compactMap { $0["subscription"] as? Int })
                })
        }
        for name in named.union((announced ?? [:]).keys) where sums[name] == nil { remove(name) }
        announced = sums
        blocked = nil
        writeCheckpoint = try value["write_checkpoint"].map(Self.number)
    }

    private mutating func diff(_ value: [String: Any]) throws {
        guard announced != nil else { throw StreamError(description: "checkpoint_diff without previous checkpoint") }
        position = try Self.number(value["last_op_id"])
        let sums = try Self.sums(value["updated_buckets"])
        guard let names = value["removed_buckets"] as? [String] else {
            throw StreamError(description: "missing field `removed_buckets`")
        }
        for name in names {
            announced?[name] = nil
            remove(name)
        }
        announced?.merge(sums) { $1 }
        blocked = nil
        writeCheckpoint = try value["write_checkpoint"].map(Self.number)
    }

    /// Removes a bucket; its rows disappear with the next consistent state.
    private mutating func remove(_ name: String) {
        guard let bucket = buckets.removeValue(forKey: name) else { return }
        removed.formUnion(bucket.operations.keys)
    }

    // MARK: Data

    private mutating func data(_ value: [String: Any]) throws {
        guard let name = value["bucket"] as? String, let list = value["data"] as? [[String: Any]] else {
            throw StreamError(description: "data")
        }
        if announced?[name] == nil { unannounced.append(name) }
        var bucket = buckets[name] ?? Bucket()
        for item in list {
            let number = try Self.number(item["op_id"])
            guard let checksum = item["checksum"] as? Int else {
                throw StreamError(description: "missing field `checksum`")
            }
            bucket.sum &+= UInt32(truncatingIfNeeded: checksum)
            switch item["op"] as? String {
            case "PUT":
                guard let data = item["data"] as? String else { throw StreamError(description: "expected a string") }
                // Number 0 counts as a deletion.
                bucket.operations[try Self.row(item)] = Operation(number: number, data: number == 0 ? nil : data)
            case "REMOVE":
                let row = try Self.row(item)
                if bucket.operations.removeValue(forKey: row) != nil { removed.insert(row) }
            case "MOVE": break
            case "CLEAR":
                removed.formUnion(bucket.operations.keys)
                bucket.operations = [:]
                bucket.applied = 0
                bucket.sum = UInt32(truncatingIfNeeded: checksum)
            default: throw StreamError(description: "unknown variant")
            }
            bucket.last = number
        }
        buckets[name] = bucket
    }

    private static func row(_ item: [String: Any]) throws -> Row {
        guard let type = item["object_type"] as? String, let id = item["object_id"] as? String else {
            throw StreamError(description: "object_type")
        }
        return Row(type: type, id: id)
    }

    // MARK: Display

    private mutating func complete() throws {
        guard let announced else { throw StreamError(description: "complete without checkpoint") }
        let wrong = announced.filter { (buckets[$0.key]?.sum ?? 0) != $0.value }.keys.sorted()
        if let first = wrong.first {
            for name in wrong { remove(name) }
            throw StreamError(description: "checksum of \(first)")
        }
        let checkpoint = Checkpoint(position: position, writeCheckpoint: writeCheckpoint, names: Set(announced.keys))
        blocked = display(checkpoint) ? nil : checkpoint
    }

    /// Displays the last consistent state, if only local writes prevented it; called after an upload.
    package mutating func displayIfPossible() {
        guard let checkpoint = blocked else { return }
        blocked = nil
        _ = display(checkpoint)
    }

    /// - Returns: `false` if uploads wait, or the number that is waited for has not arrived.
    private mutating func display(_ checkpoint: Checkpoint) -> Bool {
        // A bucket without operations is not stored.
        for name in checkpoint.names { buckets[name]?.last = checkpoint.position }
        if let number = checkpoint.writeCheckpoint { reached = number }
        guard waitingCount == 0, target <= reached else { return false }
        completedCount += 1
        var changed = removed
        removed = []
        for bucket in buckets.values {
            for (row, operation) in bucket.operations where operation.number > bucket.applied { changed.insert(row) }
        }
        for row in changed {
            let puts = buckets.values.compactMap { $0.operations[row] }.filter { $0.data != nil }
            rows[row] = puts.max { $0.number < $1.number }?.data
        }
        for (name, bucket) in buckets { buckets[name]?.applied = bucket.last }
        return true
    }
}

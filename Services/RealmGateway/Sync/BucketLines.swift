import Essentials
import FoundationEssentials
import Model
import NIOCore

/// The lines of a stream of the PowerSync protocol, and what its device was sent.
///
/// Realms are announced before their data. A realm that is closed is removed with the next consistent state. All
/// checksums are 0: clients only add and compare them, so that any selection of a realm's history is valid.
final class BucketLines {
    static let clear = "{\"op_id\":\"1\",\"op\":\"CLEAR\",\"checksum\":0}"

    /// The operation that only moves the position from which a device continues.
    static func move(to position: Int64) -> String { "{\"op_id\":\"\(position)\",\"op\":\"MOVE\",\"checksum\":0}" }

    /// Some clients end a stream after 40 s without a byte.
    static let keepaliveMax = Duration.seconds(20)

    /// Positions after which an idle device is sent its new position, so that it does not fall behind the compaction.
    private static let idleLagMax: Int64 = 10_000

    private let includesDefaults: Bool
    private let subscriptions: [RealmPath?]
    private let generation: Int64
    /// The number up to which the client's uploads are in the data of the next checkpoint.
    private var writeCheckpoint: Int64?
    private var announced: Set<RealmPath> = []
    private var added: [RealmPath] = []
    private var removed: Set<RealmPath> = []
    /// The last announced position, and number; below 0 before the first line.
    private var position: Int64 = -1
    private var sentWriteCheckpoint: Int64?
    /// Whether lines were sent since the last consistent state.
    private var isPartial = true

    init(_ request: BucketRequest, generation: Int64) {
        (includesDefaults, subscriptions) = (request.includesDefaults, request.subscriptions)
        self.generation = generation
    }

    /// Records the client's number. It never falls within a connection.
    func setWriteCheckpoint(_ number: Int64?) {
        guard let number else { return }
        writeCheckpoint = max(number, writeCheckpoint ?? number)
    }

    /// Records that data was written.
    func addedData() { isPartial = true }

    func opened(_ realm: RealmPath) {
        if removed.remove(realm) == nil, !announced.contains(realm), !added.contains(realm) { added.append(realm) }
    }

    func closed(_ realm: RealmPath) {
        if let index = added.firstIndex(of: realm) { added.remove(at: index) }
        if announced.contains(realm) { removed.insert(realm) }
    }

    /// Returns the line that announces the opened realms before their data; `nil` if all were announced.
    ///
    /// - Parameter defaults: The realms of the default stream.
    func announcement(at position: Int64, defaults: @autoclosure () -> Set<RealmPath>) -> ByteBuffer? {
        let isFirst = self.position < 0
        guard isFirst || !added.isEmpty else { return nil }
        let defaults = includesDefaults ? defaults() : []
        let buckets = added.map { bucket($0, isDefault: defaults.contains($0)) }.joined(separator: ",")
        announced.formUnion(added)
        added = []
        isPartial = true
        self.position = position
        sentWriteCheckpoint = writeCheckpoint
        if isFirst {
            return ByteBuffer(
                string: "{\"checkpoint\":{\"last_op_id\":\"\(position)\",\"buckets\":[\(buckets)],"
                    + "\"streams\":[\(streams)]\(number)}}\n")
        }
        return diff(updated: buckets)
    }

    /// Returns the lines that mark a consistent state: everything up to the position was written.
    func checkpoint(at position: Int64) -> [ByteBuffer] {
        let isNew = position > self.position || !removed.isEmpty || writeCheckpoint != sentWriteCheckpoint
        guard isNew || isPartial else { return [] }
        isPartial = false
        var lines: [ByteBuffer] = []
        if isNew {
            self.position = max(position, self.position)
            sentWriteCheckpoint = writeCheckpoint
            lines.append(diff(updated: ""))
        }
        lines.append(ByteBuffer(string: "{\"checkpoint_complete\":{\"last_op_id\":\"\(self.position)\"}}\n"))
        return lines
    }

    /// Returns the lines of an idle stream whose device has everything up to the position.
    func keepalive(expiresIn seconds: Int64, at position: Int64) -> [ByteBuffer] {
        let isBehind = !isPartial && position - self.position > Self.idleLagMax
        return (isBehind ? checkpoint(at: position) : []) + [Self.expiry(in: seconds)]
    }

    static func expiry(in seconds: Int64) -> ByteBuffer {
        ByteBuffer(string: "{\"token_expires_in\":\(seconds)}\n")
    }

    private func diff(updated: String) -> ByteBuffer {
        let names = removed.sorted().map { "\"\(generation):\($0)\"" }.joined(separator: ",")
        announced.subtract(removed)
        removed = []
        return ByteBuffer(
            string: "{\"checkpoint_diff\":{\"last_op_id\":\"\(position)\",\"updated_buckets\":[\(updated)],"
                + "\"removed_buckets\":[\(names)]\(number)}}\n")
    }

    /// A checkpoint without the number declares that there is none, so it is in each of them.
    private var number: String { writeCheckpoint.map { ",\"write_checkpoint\":\"\($0)\"" } ?? "" }

    private func bucket(_ realm: RealmPath, isDefault: Bool) -> String {
        var sources = isDefault ? ["{\"default\":0}"] : []
        for (index, path) in subscriptions.enumerated() where path == realm {
            sources.append("{\"sub\":\(index)}")
        }
        return "{\"bucket\":\"\(generation):\(realm)\",\"checksum\":0,\"priority\":3,"
            + "\"subscriptions\":[\(sources.joined(separator: ","))]}"
    }

    /// The streams of the request, with the subscriptions that open no realm.
    private var streams: String {
        var streams: [String] = []
        if includesDefaults {
            streams.append("{\"name\":\"\(BucketRequest.defaultStream)\",\"is_default\":true,\"errors\":[]}")
        }
        if !subscriptions.isEmpty {
            let errors = subscriptions.enumerated().compactMap { index, path -> String? in
                guard let path else {
                    return error(index, "a subscription needs the stream 'realm' and the 'path' of a realm")
                }
                if announced.contains(path) { return nil }
                return error(index, "the realm \(path) does not exist, or you have no permission to open it")
            }
            streams.append(
                "{\"name\":\"\(BucketRequest.realmStream)\",\"is_default\":false,"
                    + "\"errors\":[\(errors.joined(separator: ","))]}")
        }
        return streams.joined(separator: ",")
    }

    private func error(_ index: Int, _ message: String) -> String {
        "{\"subscription\":\(index),\"message\":\"\(message)\"}"
    }
}

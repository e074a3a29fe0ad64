import ArgumentParser
import FoundationEssentials
import Glibc
import Kafka
import Model
import Runtime

/// `fieldpost lag`: how far each consumer group is behind.
struct LagCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lag", abstract: "How far each consumer group is behind, per partition.")

    @Option(help: "Only this topic.") var topic: String?
    @Option(help: "Only this consumer group.") var group: String?
    @Flag(help: "Only partitions with a lag, or an unknown one.") var behind = false
    @Flag(help: "Look again every two seconds until Ctrl-C.") var watch = false
    @OptionGroup var brokers: BrokerOptions
    @OptionGroup var output: OutputOptions

    private static let watchInterval: Duration = .seconds(2)

    func validate() throws {
        if let topic, !Topics.all.contains(where: { $0.name == topic }) {
            let names = Topics.all.map(\.name).joined(separator: ", ")
            throw ValidationError("there is no topic \(topic); there are \(names)")
        }
        if let group, !Topics.all.contains(where: { $0.consumers.contains(group) }) {
            let names = Set(Topics.all.flatMap(\.consumers)).sorted().joined(separator: ", ")
            throw ValidationError("there is no consumer group \(group); there are \(names)")
        }
    }

    func run() throws {
        let (addresses, properties) = try brokers.resolved()
        let admin = try brokers.admin()
        while true {
            let (rows, failure) = try load(admin, addresses, properties)
            let shown = behind ? rows.filter { $0.lag != 0 } : rows
            if watch, !output.json, isatty(STDOUT_FILENO) == 1 { print("\u{1B}[2J\u{1B}[H", terminator: "") }
            try output.show(shown, table(shown))
            guard watch else {
                if let failure { throw CommandFailure("the broker does not answer: \(failure)") }
                return
            }
            fflush(nil)
            poll(nil, 0, Int32(Self.watchInterval.milliseconds))
        }
    }

    /// - Returns: A row for every partition of the catalogue, and why some are unknown.
    private func load(
        _ admin: borrowing Admin, _ addresses: String, _ properties: [String: String]
    ) throws -> (rows: [LagRow], failure: KafkaError?) {
        var rows: [LagRow] = []
        var failure: KafkaError?
        for topic in Topics.all where self.topic == nil || self.topic == topic.name {
            for group in topic.consumers where self.group == nil || self.group == group {
                let partitions = (0..<Int32(topic.partitions)).map { TopicPartition(topic: topic.name, partition: $0) }
                var group = GroupLag(group: group, partitions: partitions)
                do {
                    // One that does not answer is not asked again for every partition.
                    if failure == nil { try group.load(admin) }
                } catch {
                    failure = error
                }
                let times = try WrittenTimes.load(
                    group.unfinished, brokers: addresses, properties: properties, waitMax: BrokerOptions.waitMax)
                rows += group.rows(times, now: Int64(Date().timeIntervalSince1970 * 1_000))
            }
        }
        return (rows, failure)
    }

    private func table(_ rows: [LagRow]) -> Table {
        var table = Table(
            [
                ("TOPIC", .left), ("PARTITION", .right), ("GROUP", .left), ("COMMITTED", .right), ("END", .right),
                ("LAG", .right), ("OLDEST", .right),
            ], empty: "no group is behind")
        for row in rows {
            table.add([
                row.topic, String(row.partition), row.group, row.committed.map(String.init) ?? "-",
                row.end.map(String.init) ?? "unknown", row.lag.map(String.init) ?? "unknown",
                row.oldestAgeMs.map { Duration.milliseconds($0).shortText } ?? (row.lag == 0 ? "-" : "unknown"),
            ])
        }
        return table
    }
}

private struct LagRow: Encodable {
    let topic: String
    let partition: Int32
    let group: String
    /// The offset below which everything is finished; `nil` when nothing was committed.
    let committed: Int64?
    /// `nil`: the broker did not tell.
    let end: Int64?
    let lag: Int64?
    /// How long ago the oldest unfinished message was written; `nil` when there is none, or it is not known.
    let oldestAgeMs: Int64?
}

/// What the broker tells of one group on one topic.
private struct GroupLag {
    let group: String
    let partitions: [TopicPartition]
    var committed: [TopicPartition: Int64] = [:]
    var ranges: [TopicPartition: Range<Int64>] = [:]

    init(group: String, partitions: [TopicPartition]) {
        self.group = group
        self.partitions = partitions
    }

    mutating func load(_ admin: borrowing Admin) throws(KafkaError) {
        // The committed offsets first: read afterwards they could lie above the ends.
        committed = try admin.committed(group: group, partitions)
        for partition in partitions { ranges[partition] = try admin.watermarks(partition) }
    }

    /// Where each partition with a lag goes on. Nothing was committed: at its beginning; committed beyond the end: the
    /// broker lost its content, and the group begins anew.
    private func start(_ partition: TopicPartition) -> Int64? {
        guard let range = ranges[partition] else { return nil }
        guard let offset = committed[partition], offset <= range.upperBound else { return range.lowerBound }
        return max(offset, range.lowerBound)
    }

    var unfinished: [TopicPartition: Int64] {
        var offsets: [TopicPartition: Int64] = [:]
        for partition in partitions {
            guard let start = start(partition), let range = ranges[partition], start < range.upperBound else {
                continue
            }
            offsets[partition] = start
        }
        return offsets
    }

    func rows(_ times: [TopicPartition: Int64], now: Int64) -> [LagRow] {
        partitions.map { partition in
            let end = ranges[partition]?.upperBound
            let lag = start(partition).flatMap { start in end.map { $0 - start } }
            let time = times[partition].flatMap { $0 < 0 ? nil : $0 }
            return LagRow(
                topic: partition.topic, partition: partition.partition, group: group, committed: committed[partition],
                end: end, lag: lag, oldestAgeMs: lag == 0 ? nil : time.map { max(0, now - $0) })
        }
    }
}

import ArgumentParser
import Essentials
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
    @Flag(help: "Only partitions with a lag, an unknown one, or messages that expired.") var behind = false
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
            let shown = behind ? rows.filter { $0.lag != 0 || $0.expired != 0 } : rows
            if watch, !output.json, isatty(STDOUT_FILENO) == 1 { print("\u{1B}[2J\u{1B}[H", terminator: "") }
            try output.show(shown, table(shown))
            guard watch else {
                if let failure { throw CommandFailure(failure) }
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
                ("LAG", .right), ("OLDEST", .right), ("EXPIRED", .right),
            ], empty: "no group is behind")
        for row in rows {
            table.add([
                row.topic, String(row.partition), row.group, row.committed.map(String.init) ?? "-",
                row.end.map(String.init) ?? "unknown", row.lag.map(String.init) ?? "unknown",
                row.oldestAgeMs.map { Duration.milliseconds($0).shortText } ?? (row.lag == 0 ? "-" : "unknown"),
                row.expired.map(String.init) ?? "unknown",
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
    /// Messages that were removed before the group has read them. The group asks for them when it runs.
    let expired: Int64?
}

/// What the broker tells of one group on one topic.
private struct GroupLag {
    let group: String
    let partitions: [TopicPartition]
    private var beginnings: [TopicPartition: Beginning] = [:]

    init(group: String, partitions: [TopicPartition]) {
        self.group = group
        self.partitions = partitions
    }

    mutating func load(_ admin: borrowing Admin) throws(KafkaError) {
        // The committed offsets first: read afterwards they could lie above the ends.
        let committed = try admin.committed(group: group, partitions)
        for partition in partitions {
            beginnings[partition] = Beginning(
                partition: partition, committed: committed[partition], available: try admin.watermarks(partition))
        }
    }

    /// Where each partition with a lag goes on.
    var unfinished: [TopicPartition: Int64] {
        beginnings.mapValues(\.start).filter { partition, start in start < beginnings[partition]?.end ?? start }
    }

    func rows(_ times: [TopicPartition: Int64], now: Int64) -> [LagRow] {
        partitions.map { partition in
            let beginning = beginnings[partition]
            let lag = beginning.map { $0.end - $0.start }
            let time = times[partition].flatMap { $0 < 0 ? nil : $0 }
            return LagRow(
                topic: partition.topic, partition: partition.partition, group: group, committed: beginning?.committed,
                end: beginning?.end, lag: lag, oldestAgeMs: lag == 0 ? nil : time.map { max(0, now - $0) },
                expired: beginning.map { Int64($0.expired.count) })
        }
    }
}

import ArgumentParser
import CommandLineSupport
import Essentials
import Glibc
import Kafka
import LagMonitoring
import Model

/// `fieldpost lag`: the lag of consumer groups.
struct LagCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lag", abstract: "Show the lag of each consumer group, per partition.",
        discussion: """
            Lag is the number of messages that a group has not committed, with the age of the oldest. A message whose \
            key was deferred is committed: see fieldpost deferred list. Without --group, Fieldpost's own groups are \
            shown; any other group of the cluster is shown with the partitions of its committed offsets.
            """)

    @Option(help: "Limit to this topic.") var topic: String?
    @Option(help: "Limit to this consumer group, of Fieldpost or not.") var group: String?
    @Flag(help: "Limit to partitions with a lag, unknown lag or expired messages.") var behind = false
    @Flag(help: "Repeat every two seconds until Ctrl-C; adds rate, ETA and status.") var watch = false
    @OptionGroup var brokers: BrokerOptions
    @OptionGroup var output: OutputOptions

    private static let watchInterval: Duration = .seconds(2)

    func validate() throws {
        if let topic, foreignGroup == nil { _ = try Topic.named(topic) }
    }

    /// The requested group, if it is not in the catalogue.
    private var foreignGroup: String? {
        group.flatMap { name in Topics.all.contains { $0.consumers.contains(name) } ? nil : name }
    }

    func run() throws {
        let (addresses, properties) = try brokers.resolved()
        let reader = try LagReader(brokers: addresses, properties: properties, waitMax: BrokerOptions.waitMax)
        var history = LagHistory()
        while true {
            let failure = try sample(reader, &history)
            let rows = rows(history)
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

    /// The selected groups of the catalogue, with their topics.
    private var groups: [String: [String]] {
        var groups: [String: [String]] = [:]
        for topic in Topics.all where self.topic == nil || self.topic == topic.name {
            for group in topic.consumers where self.group == nil || self.group == group {
                groups[group, default: []].append(topic.name)
            }
        }
        return groups
    }

    /// - Returns: The error of an incomplete sample; `nil` if it is complete.
    /// - Throws: `CommandFailure` if the requested group does not exist.
    private func sample(
        _ reader: borrowing LagReader, _ history: inout LagHistory
    ) throws(CommandFailure) -> KafkaError? {
        let snapshot: LagSnapshot
        do throws(KafkaError) {
            snapshot = try reader.snapshot(of: groups, others: false, named: foreignGroup.map { [$0] } ?? [])
            history.take(snapshot)
            for group in snapshot.groups {
                history.learn(try reader.writtenTimes(of: history.offsetsOfUnknownAge(of: group.name)), of: group.name)
            }
        } catch {
            history = LagHistory()
            return error
        }
        if let name = foreignGroup, let group = snapshot.groups.first(where: { $0.name == name }),
            group.offsets.isEmpty, group.memberCount ?? 0 == 0
        {
            let names = Set(Topics.all.flatMap(\.consumers)).sorted().joined(separator: ", ")
            throw CommandFailure(
                "consumer group \(name) has neither members nor committed offsets; Fieldpost's groups: \(names)")
        }
        return snapshot.problems.min { $0.key < $1.key }?.value
    }

    /// Returns a row for every partition of the catalogue, including empty ones; for another group, those of its
    /// committed offsets.
    private func rows(_ history: LagHistory) -> [LagRow] {
        if let foreignGroup {
            return history.lags.filter { $0.group == foreignGroup && topic ?? $0.partition.topic == $0.partition.topic }
                .map { LagRow($0.partition, group: foreignGroup, $0) }
        }
        let lags = Dictionary(grouping: history.lags, by: \.group).mapValues { lags in
            Dictionary(lags.map { ($0.partition, $0) }) { first, _ in first }
        }
        return Topics.all.flatMap { topic in
            groups.filter { $0.value.contains(topic.name) }.keys.sorted().flatMap { group in
                // A scaled topic (`topics scale`) has more partitions than declared.
                let partitionCount =
                    lags[group]?.keys.filter { $0.topic == topic.name }.map { $0.partition + 1 }.max() ?? 0
                return (0..<max(Int32(topic.partitions), partitionCount)).map { number in
                    let partition = TopicPartition(topic: topic.name, partition: number)
                    return LagRow(partition, group: group, lags[group]?[partition])
                }
            }
        }
    }

    /// Messages per second, with one decimal below 100.
    private static func text(_ rate: Double) -> String {
        let tenths = Int64((rate * 10).rounded())
        return tenths >= 1_000 ? "\(tenths / 10)/s" : "\(tenths / 10).\(tenths % 10)/s"
    }

    private func table(_ rows: [LagRow]) -> Table {
        Table(
            [
                "TOPIC", .right("PARTITION"), "GROUP", .right("COMMITTED"), .right("END"), .right("LAG"),
                .right("OLDEST"), .right("EXPIRED"), .right("RATE"), .right("ETA"), "STATUS",
            ], rows, empty: "no lag; list deferred keys with: fieldpost deferred list"
        ) { row in
            [
                row.topic, String(row.partition), row.group, row.committed.map(String.init) ?? "-",
                row.end.map(String.init) ?? "unknown", row.lag.map(String.init) ?? "unknown",
                row.oldestAgeMs.map { Duration.milliseconds($0).shortText } ?? (row.lag == 0 ? "-" : "unknown"),
                row.expired.map(String.init) ?? "unknown", row.rate.map(Self.text) ?? "-",
                row.closesMs.map { $0 == 0 ? "-" : Duration.milliseconds($0).shortText } ?? "-", row.status ?? "-",
            ]
        }
    }
}

private struct LagRow: Encodable {
    let topic: String
    let partition: Int32
    let group: String
    /// The committed offset; `nil` if there is none.
    let committed: Int64?
    /// `nil` if the broker did not report it.
    let end: Int64?
    let lag: Int64?
    /// The age of the oldest uncommitted message; `nil` if there is none, or the age is unknown.
    let oldestAgeMs: Int64?
    /// Number of messages that expired before the group read them. The group requests them again when it runs.
    let expired: Int64?
    /// Messages per second that the group commits, measured with `--watch`.
    let rate: Double?
    /// Estimated time until the lag is zero; `nil` if it grows, or without `--watch`.
    let closesMs: Int64?
    /// The consumer-group status, by Burrow's rules, measured with `--watch`.
    let status: String?

    init(_ partition: TopicPartition, group: String, _ lag: PartitionLag?) {
        topic = partition.topic
        self.partition = partition.partition
        self.group = group
        committed = lag?.beginning.committed
        end = lag?.beginning.end
        self.lag = lag?.count
        oldestAgeMs = lag?.age.flatMap { age in
            if case .exact(let seconds) = age { Int64(seconds * 1_000) } else { nil }
        }
        expired = lag?.expiredCount
        rate = lag?.outPerSecond
        closesMs = lag?.outPerSecond.flatMap { _ in lag?.drainSeconds }.flatMap {
            Int64(exactly: ($0 * 1_000).rounded())
        }
        status = lag?.status?.rawValue
    }
}

import ArgumentParser
import CommandLineSupport
import Essentials
import Glibc
import Kafka
import LagMonitoring
import Model
import ServiceRuntime

/// `fieldpost lag`: how far each consumer group is behind.
struct LagCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "lag", abstract: "How far each consumer group is behind, per partition.",
        discussion: """
            Messages of a group that are not finished, and how long the oldest of them waits. One whose key was parked \
            is finished and not among them: fieldpost parked list. Without --group, Fieldpost's own groups are shown; \
            any other group of the cluster is shown with the partitions that it has committed offsets of.
            """)

    @Option(help: "Only this topic.") var topic: String?
    @Option(help: "Only this consumer group, Fieldpost's or another one.") var group: String?
    @Flag(help: "Only partitions with a lag, an unknown one, or messages that expired.") var behind = false
    @Flag(help: "Look again every two seconds until Ctrl-C.") var watch = false
    @OptionGroup var brokers: BrokerOptions
    @OptionGroup var output: OutputOptions

    private static let watchInterval: Duration = .seconds(2)

    func validate() throws {
        if let topic, foreignGroup == nil { _ = try Topic.named(topic) }
    }

    /// The requested group, if it is none of the catalogue.
    private var foreignGroup: String? {
        group.flatMap { name in Topics.all.contains { $0.consumers.contains(name) } ? nil : name }
    }

    func run() throws {
        let (addresses, properties) = try brokers.resolved()
        let reader = try LagReader(brokers: addresses, properties: properties, waitMax: BrokerOptions.waitMax)
        var history = LagHistory()
        while true {
            let failure = try look(reader, &history)
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

    /// The catalogue's groups that are asked for, with their topics.
    private var groups: [String: [String]] {
        var groups: [String: [String]] = [:]
        for topic in Topics.all where self.topic == nil || self.topic == topic.name {
            for group in topic.consumers where self.group == nil || self.group == group {
                groups[group, default: []].append(topic.name)
            }
        }
        return groups
    }

    /// - Returns: Why something is unknown.
    /// - Throws: When there is no group of the name that was given.
    private func look(
        _ reader: borrowing LagReader, _ history: inout LagHistory
    ) throws(CommandFailure) -> KafkaError? {
        let look: LagLook
        do throws(KafkaError) {
            look = try reader.look(at: groups, others: false, named: foreignGroup.map { [$0] } ?? [])
            history.take(look)
            for group in look.groups {
                history.learn(try reader.writtenTimes(of: history.unknownAges(of: group.name)), of: group.name)
            }
        } catch {
            history = LagHistory()
            return error
        }
        if let name = foreignGroup, let found = look.groups.first(where: { $0.name == name }),
            found.offsets.isEmpty, found.memberCount ?? 0 == 0
        {
            let names = Set(Topics.all.flatMap(\.consumers)).sorted().joined(separator: ", ")
            throw CommandFailure(
                "consumer group \(name) has neither members nor committed offsets; Fieldpost's groups: \(names)")
        }
        return look.problems.min { $0.key < $1.key }?.value
    }

    /// A row for every partition of the catalogue, also for those without data; of another group, for
    /// those that it has committed offsets of.
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
                // One that was given more partitions (`topics scale`) has them all here.
                let found = lags[group]?.keys.filter { $0.topic == topic.name }.map { $0.partition + 1 }.max() ?? 0
                return (0..<max(Int32(topic.partitions), found)).map { number in
                    let partition = TopicPartition(topic: topic.name, partition: number)
                    return LagRow(partition, group: group, lags[group]?[partition])
                }
            }
        }
    }

    /// Messages a second; few of them with a digit more.
    private static func text(_ rate: Double) -> String {
        let tenths = Int64((rate * 10).rounded())
        return tenths >= 1_000 ? "\(tenths / 10)/s" : "\(tenths / 10).\(tenths % 10)/s"
    }

    private func table(_ rows: [LagRow]) -> Table {
        var table = Table(
            [
                ("TOPIC", .left), ("PARTITION", .right), ("GROUP", .left), ("COMMITTED", .right), ("END", .right),
                ("LAG", .right), ("OLDEST", .right), ("EXPIRED", .right), ("RATE", .right), ("CLOSES", .right),
                ("STATUS", .left),
            ], empty: "no group is behind; what was parked: fieldpost parked list")
        for row in rows {
            table.add([
                row.topic, String(row.partition), row.group, row.committed.map(String.init) ?? "-",
                row.end.map(String.init) ?? "unknown", row.lag.map(String.init) ?? "unknown",
                row.oldestAgeMs.map { Duration.milliseconds($0).shortText } ?? (row.lag == 0 ? "-" : "unknown"),
                row.expired.map(String.init) ?? "unknown", row.rate.map(Self.text) ?? "-",
                row.closesMs.map { $0 == 0 ? "-" : Duration.milliseconds($0).shortText } ?? "-", row.status ?? "-",
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
    /// Messages a second that the group finishes, by what was seen while it was watched (`--watch`).
    let rate: Double?
    /// When nothing waits any more if all goes on so; `nil` when it grows, or was not watched.
    let closesMs: Int64?
    /// How it fares, by what was seen while it was watched (`--watch`).
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
        rate = lag?.goesPerSecond
        closesMs = lag?.goesPerSecond.flatMap { _ in lag?.closesSeconds }.flatMap {
            Int64(exactly: ($0 * 1_000).rounded())
        }
        status = lag?.status?.rawValue
    }
}

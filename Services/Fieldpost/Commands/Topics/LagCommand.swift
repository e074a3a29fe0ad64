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
        commandName: "lag", abstract: "Show the lag of each consumer group and topic.",
        discussion: """
            Lag is the number of messages that a group has not committed, with the age of the oldest. A message whose \
            key was deferred is committed: see fieldpost deferred list. Without --group, Fieldpost's own groups are \
            shown. Any other group is shown with the partitions of its committed offsets. A topic of own kinds, \
            own.{environment}.{topic}, is shown with all groups that committed offsets on it. --watch \
            sorts the worst rows first and fits 40 lines. --json prints a row for each partition, and with --watch an \
            array for each sample.
            """)

    @Option(help: "Limit to this topic.", completion: Completion.topics) var topic: String?
    @Option(help: "Limit to this consumer group, of Fieldpost or not.", completion: Completion.groups)
    var group: String?
    @Flag(help: "Limit to rows with a lag, unknown lag or expired messages.") var behind = false
    @Flag(help: "Show a row for each partition.") var partitions = false
    @Flag(help: "Repeat every two seconds until Ctrl-C; adds rate, ETA and status.") var watch = false
    @Option(help: "Maximum rows of the table. (default: 37 with --watch, otherwise all)") var limit: Int?
    @OptionGroup var brokers: BrokerOptions
    @OptionGroup var output: OutputOptions

    private static let watchInterval: Duration = .seconds(2)
    /// The rows of a table of 40 lines with its header, the number of hidden rows, and the line of the cursor.
    private static let watchRowsMax = 37

    func validate() throws {
        if let topic, foreignGroup == nil { _ = try Topic.named(topic) }
        try validateRange("--limit", limit, in: 1...1_000_000)
    }

    /// Whether all groups of a topic of own kinds are requested, which are not in the catalogue.
    private var ofOwnTopic: Bool { group == nil && topic.map(Topic.isOwn) ?? false }

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
            if output.json { try printJSON(selected(rows)) } else { show(rows) }
            guard watch else {
                if let failure { throw CommandFailure(failure) }
                return
            }
            fflush(nil)
            poll(nil, 0, Int32(Self.watchInterval.milliseconds))
        }
    }

    private func selected(_ rows: [LagRow]) -> [LagRow] { behind ? rows.filter(\.isBehind) : rows }

    /// Prints the table, and the number of rows that do not fit.
    private func show(_ all: [LagRow]) {
        let rows = selected(partitions ? all : LagRow.sums(of: all))
        let sorted = watch ? LagRow.worstFirst(rows) : rows
        let shown = Array(sorted.prefix(limit ?? (watch ? Self.watchRowsMax : .max)))
        if watch, isatty(STDOUT_FILENO) == 1 { print("\u{1B}[2J\u{1B}[H", terminator: "") }
        print((partitions ? partitionTable(shown) : groupTable(shown)).text, terminator: "")
        let hidden = sorted.count - shown.count
        if hidden > 0 { print("\(hidden) more \(hidden == 1 ? "row" : "rows") hidden: --limit, --group, --topic") }
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
            snapshot = try reader.snapshot(of: groups, others: ofOwnTopic, named: foreignGroup.map { [$0] } ?? [])
            history.take(snapshot)
            for group in snapshot.groups where !ofOwnTopic || group.offsets.keys.contains(where: { $0.topic == topic })
            {
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
        // Other groups of the cluster may be unavailable to this client.
        let problems = snapshot.problems.filter { !ofOwnTopic || !$0.key.contains("group ") }
        return problems.min { $0.key < $1.key }?.value
    }

    /// Returns a row for every partition of the catalogue, including empty ones; for other groups, those of their
    /// committed offsets.
    private func rows(_ history: LagHistory) -> [LagRow] {
        if ofOwnTopic || foreignGroup != nil {
            return history.lags.filter { lag in
                foreignGroup ?? lag.group == lag.group && topic ?? lag.partition.topic == lag.partition.topic
            }.map { LagRow($0.partition, group: $0.group, $0) }
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

    private var empty: String {
        guard let topic, ofOwnTopic, !behind else { return "no lag; list deferred keys with: fieldpost deferred list" }
        return "no listed group has committed offsets on \(topic); for a group that brokers do not list: --group"
    }

    private func groupTable(_ rows: [LagRow]) -> Table {
        Table(
            [
                "TOPIC", "GROUP", .right("LAG"), .right("OLDEST"), .right("BEHIND"), .right("EXPIRED"), .right("RATE"),
                .right("ETA"), "STATUS",
            ], rows, empty: empty
        ) { row in
            [row.topic, row.group, Self.lag(row), Self.oldest(row), "\(row.behindCount)/\(row.partitionCount)"]
                + Self.measured(row)
        }
    }

    private func partitionTable(_ rows: [LagRow]) -> Table {
        Table(
            [
                "TOPIC", .right("PARTITION"), "GROUP", .right("COMMITTED"), .right("END"), .right("LAG"),
                .right("OLDEST"), .right("EXPIRED"), .right("RATE"), .right("ETA"), "STATUS",
            ], rows, empty: empty
        ) { row in
            [
                row.topic, row.partition.map(String.init) ?? "-", row.group, row.committed.map(String.init) ?? "-",
                row.end.map(String.init) ?? "unknown", Self.lag(row), Self.oldest(row),
            ] + Self.measured(row)
        }
    }

    /// The lag; a minimum if some partitions' lag is unknown.
    private static func lag(_ row: LagRow) -> String {
        guard let lag = row.lag else { return "unknown" }
        return row.unknownCount == 0 ? String(lag) : "≥\(lag)"
    }

    private static func oldest(_ row: LagRow) -> String {
        row.oldestAgeMs.map { Duration.milliseconds($0).shortText } ?? (row.behindCount == 0 ? "-" : "unknown")
    }

    /// The columns from `EXPIRED` on.
    private static func measured(_ row: LagRow) -> [String] {
        [
            row.expired.map(String.init) ?? "unknown", row.rate.map(text) ?? "-",
            row.drainMs.map { $0 == 0 ? "-" : Duration.milliseconds($0).shortText } ?? "-", row.status ?? "-",
        ]
    }
}

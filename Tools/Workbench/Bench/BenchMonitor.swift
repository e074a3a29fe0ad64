import Telemetry
import ArgumentParser
import Essentials
import Glibc
import Kafka
import LagMonitoring
import NIOCore
import ServiceRuntime

/// A round of `lag-monitor` over many groups and partitions, against asking for the same offsets alone.
struct BenchMonitor: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "monitor",
        abstract: "A round of lag-monitor over many groups and partitions, against the offsets alone.",
        discussion: """
            The round asks, judges and writes the page that Prometheus reads. The offsets alone are the same \
            questions, asked of librdkafka, with the answers thrown away. Requests are those that librdkafka says it \
            sent.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Consumer groups; each has committed for all partitions.")
    var groups = 50

    @Option(help: "Topics of 100 partitions each.")
    var topics = 20

    @Option(help: "Partitions of groups that are told of one by one at most (monitor.partitions).")
    var partitions = 20_000

    private static let partitionCount: Int32 = 100
    private static let waitMax = Duration.seconds(60)
    /// Each partition has about so many messages; a group is at a place of its own.
    private static let messageCount = 20

    private var topicNames: [String] { (0..<topics).map { "bench-\($0).events" } }
    private var groupNames: [String] { (0..<groups).map { "bench-service-\($0)" } }
    private var known: [String: [String]] {
        Dictionary(groupNames.map { ($0, topicNames) }) { first, _ in first }
    }

    func run() throws {
        let asked = topicNames.flatMap { topic in
            (0..<Self.partitionCount).map { TopicPartition(topic: topic, partition: $0) }
        }
        let place = try BenchPlace(
            options, topics: Dictionary(topicNames.map { ($0, Int(Self.partitionCount)) }) { first, _ in first })
        defer { place.end() }
        try fill(asked, place)

        var figures = BenchFigures()
        let admin = try Admin(brokers: place.brokers, waitMax: Self.waitMax)
        let questions: [String: [TopicPartition]?] = Dictionary(groupNames.map { ($0, asked) }) { $1 }
        let reader = try LagReader(brokers: place.brokers, properties: [:], waitMax: Self.waitMax)
        var history = LagHistory()
        // What is made once is no round's.
        _ = try offsetsAlone(admin, questions, asked)
        let before = Self.memory
        _ = try round(reader, &history)
        for number in 1...options.rounds {
            print("round \(number) of \(options.rounds)")
            figures.add("offsets alone", "ms", try time { _ = try offsetsAlone(admin, questions, asked) })
            var seen: (look: Duration, page: Int) = (.zero, 0)
            figures.add("round", "ms", try time { seen = try round(reader, &history) })
            figures.add("of it asking", "ms", seen.look.inSeconds * 1_000)
            figures.add("page", "kB", Double(seen.page) / 1_000)
            figures.add("memory more than before", "MB", Self.memory - before)
        }
        let requests = try requests(place)
        print(figures.table(title: "\(groups) groups × \(asked.count) partitions, on \(place.brokerName)"))
        for (name, count) in requests.sorted(by: { $0.key < $1.key }) { print("  \(name): \(count) a round") }
        let ratio = figures.median("round") / figures.median("offsets alone")
        print(BenchFigures.ratio("round / offsets alone", ratio, aim: 1.5, isAtMost: true))
    }

    /// Messages on all partitions, and groups in the midst of them.
    private func fill(_ partitions: [TopicPartition], _ place: BenchPlace) throws {
        var producer = try Producer(brokers: place.brokers)
        for topic in topicNames {
            for number in 0..<Int(Self.partitionCount) * Self.messageCount {
                try producer.send(topic, key: Array("\(number)".utf8), value: [0])
            }
        }
        guard producer.flush(waitMax: Self.waitMax) else {
            throw BenchPlace.Missing(description: "the broker is too slow")
        }
        _ = producer.deliveries(waitMax: .zero)
        let admin = try Admin(brokers: place.brokers, waitMax: Self.waitMax)
        for (index, group) in groupNames.enumerated() {
            try admin.commit(
                group: group, Dictionary(partitions.map { ($0, Int64(index % Self.messageCount)) }) { $1 })
        }
    }

    private func offsetsAlone(
        _ admin: borrowing Admin, _ questions: [String: [TopicPartition]?], _ partitions: [TopicPartition]
    ) throws -> Int {
        let committed = try admin.committed(questions)
        let firsts = try admin.offsets(at: .first, of: partitions)
        let ends = try admin.offsets(at: .end, of: partitions)
        return committed.count + firsts.count + ends.count
    }

    private func round(
        _ reader: borrowing LagReader, _ history: inout LagHistory
    ) throws -> (look: Duration, page: Int) {
        let start = ContinuousClock.now
        let look = try reader.look(at: known, others: false)
        guard look.problems.isEmpty else { throw BenchPlace.Missing(description: "\(look.problems)") }
        let asked = ContinuousClock.now - start
        history.take(look)
        var page = LagPage(cluster: "bench", placeMax: partitions)
        page.tell(history.lags)
        page.tell(look.groups, rebalances: history.rebalanceCounts)
        return (asked, page.metrics.parts.map(\.readableBytes).reduce(0, +))
    }

    /// Requests of a round by their names, by librdkafka's own log of what it sends.
    private func requests(_ place: BenchPlace) throws -> [String: Int] {
        var reader = try LagReader(
            brokers: place.brokers, properties: ["debug": "protocol", "log_level": "7"], waitMax: Self.waitMax)
        _ = try reader.look(at: known, others: false)
        _ = reader.takeLogs()
        _ = try reader.look(at: known, others: false)
        let sent = reader.takeLogs().filter { $0.facility == "SEND" }.compactMap { line in
            line.message.firstMatch(of: /Sent (\w+)Request/).map { String($0.1) }
        }
        return Dictionary(grouping: sent) { $0 }.mapValues(\.count)
    }

    private func time(_ body: () throws -> Void) rethrows -> Double {
        let start = ContinuousClock.now
        try body()
        return (ContinuousClock.now - start).inSeconds * 1_000
    }

    /// Of this process, in MB.
    private static var memory: Double { (ProcessMemory.kilobytes("VmRSS", of: getpid()) ?? .nan) / 1_024 }
}

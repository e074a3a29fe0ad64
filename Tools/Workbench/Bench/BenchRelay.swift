import ArgumentParser
import Essentials
import FoundationEssentials
import Glibc
import Kafka
import KeyedWorker
import LocalCluster
import Model
import ObjectStore
import Postgres

/// Objects to Kafka by the relay, against librdkafka producing the same bytes from memory.
struct BenchRelay: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "relay", abstract: "Objects published by the relay, against librdkafka with the same bytes.")

    @OptionGroup var options: BenchOptions

    @Option(help: "Objects to publish.")
    var objects = 100_000

    func run() throws {
        let topic = Topics.entry
        let place = try BenchPlace(options, topics: [topic.name: topic.partitions, "bench.limit": topic.partitions])
        defer { place.end() }
        var admin = try Connection(place.conninfo)
        let environment = try admin.run("INSERT INTO realm.environment (name) VALUES ('bench') RETURNING id")[0]
            .decode(EnvironmentID.self)
        let made = try BenchObjects(environment, count: objects, on: place.conninfo)
        try made.store(on: &admin)

        // As PostgreSQL prints them.
        var values: [UUID: [UInt8]] = [:]
        let stored = try admin.run("SELECT id, fields FROM store.object")
        for (id, fields) in try stored.decode(UUID.self, CanonicalJSON.self) { values[id] = fields.bytes }

        var figures = BenchFigures()
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            figures.add("librdkafka alone", "events/s", try produceAlone(made.items, values, place))
            let pages = try readAlone(environment, place, &admin)
            figures.add("PostgreSQL's pages alone", "events/s", pages.rate)
            figures.add("PostgreSQL's CPU, pages alone", "µs/event", pages.backendMicroseconds)
            figures.add("relay", "events/s", try relay(place, &admin))
        }
        print(figures.table(title: "relay, medians of \(options.rounds) rounds, on \(place.brokerName)"))
        let pages = figures.median("relay") / figures.median("PostgreSQL's pages alone")
        print("  relay / PostgreSQL's pages alone: \(BenchFigures.text(pages))")
        print(
            BenchFigures.ratio(
                "relay / librdkafka alone", figures.median("relay") / figures.median("librdkafka alone"), aim: 0.7))
    }

    /// The same keys, headers and values as the relay's, without PostgreSQL.
    private func produceAlone(
        _ items: [BenchObjects.Item], _ values: [UUID: [UInt8]], _ place: BenchPlace
    ) throws -> Double {
        var producer = try Producer(brokers: place.brokers)
        let messages = items.map { item in
            let key = item.key.id.text
            let headers: [(name: StaticString, value: [UInt8])] = [
                ("ce_specversion", EventHeaders.specVersionValue), ("ce_id", "1:1:\(item.position)"),
                ("ce_source", "/environments/1"), ("ce_type", EventHeaders.type(of: .timeEntry)),
                ("ce_time", "2026-01-01T00:00:00.000Z"), ("ce_subject", "\(item.path)/TimeEntry/\(key)"),
                ("ce_partitionkey", key), ("content-type", EventHeaders.contentTypeValue),
                ("fieldpost-position", "\(item.position)"), ("fieldpost-edit-position", "\(item.position)"),
                ("fieldpost-generation", "1"), ("fieldpost-epoch", "1"),
            ].map { ($0.0, Array($0.1.utf8)) }
            return (key: Array(key.utf8), headers: headers, value: values[item.key.id] ?? [])
        }
        let start = ContinuousClock.now
        for message in messages {
            var headers = Headers(capacity: message.headers.count)
            for header in message.headers { unsafe headers.add(header.name, header.value.span.bytes) }
            try unsafe producer.send(
                "bench.limit", key: message.key.span.bytes, value: message.value.span.bytes, headers: headers)
        }
        guard producer.flush(waitMax: .seconds(120)) else {
            throw BenchPlace.Missing(description: "the broker is too slow")
        }
        let time = ContinuousClock.now - start
        _ = producer.deliveries(waitMax: .zero)
        return Double(messages.count) / time.inSeconds
    }

    /// The same pages, read and thrown away.
    private func readAlone(
        _ environment: EnvironmentID, _ place: BenchPlace, _ admin: inout Connection
    ) throws -> (rate: Double, backendMicroseconds: Double) {
        let before = try CPUTime.backends(on: &admin)
        var connection = try Connection(place.conninfo)
        let kinds = Topics.all.flatMap(\.kinds)
        let start = ContinuousClock.now
        var (position, count) = (Int64(0), 0)
        while true {
            let rows = try connection.run(
                Feed.changes(in: environment, after: position, kinds: kinds, countMax: Self.pageCount))
            count += rows.count
            guard rows.count == Self.pageCount else { break }
            position = try rows[rows.count - 1].value(0)
        }
        let rate = Double(count) / (ContinuousClock.now - start).inSeconds
        // Its backend is still there.
        try connection.run("SELECT 1")
        return (rate, (try CPUTime.backends(on: &admin) - before) / Double(count) * 1e6)
    }

    /// As the relay's.
    private static let pageCount = 4_000

    /// The rest of the objects after the relay's first page: its start and its first connection are not measured.
    private func relay(_ place: BenchPlace, _ admin: inout Connection) throws -> Double {
        try admin.run("UPDATE realm.relay SET position = 0")
        let target = try admin.run("SELECT max(position) FROM store.change")[0].decode(Int64.self)
        let folder = try ClusterFolder("bench-relay")
        defer { folder.remove() }
        let process = try ClusterProcess(
            ClusterProcess.Command(
                executable: LocalCluster.executables + "/change-relay",
                environment: [
                    "FIELDPOST_DATABASE_URL": place.conninfo, "FIELDPOST_KAFKA_BROKERS": place.brokers,
                    "FIELDPOST_ADMIN_PORT": String(try Ports.free()), "FIELDPOST_LOG_LEVEL": "error",
                ], logPath: folder.path + "/log"))
        defer { process.kill9() }
        var (first, start) = (Int64(0), ContinuousClock.now)
        while true {
            guard process.isRunning else { throw BenchPlace.Missing(description: process.logTail()) }
            let position = try admin.run("SELECT position FROM realm.relay").first?.decode(Int64.self) ?? 0
            if first == 0, position > 0 { (first, start) = (position, .now) }
            if position >= target { break }
            // The question takes time of the same cores.
            poll(nil, 0, 5)
        }
        let time = ContinuousClock.now - start
        let count = try admin.run("SELECT count(*) FROM store.object WHERE position > \(first)")[0].decode(Int64.self)
        return Double(count) / time.inSeconds
    }
}

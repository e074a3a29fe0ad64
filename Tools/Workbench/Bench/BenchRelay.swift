import ArgumentParser
import Essentials
import FoundationEssentials
import Kafka
import LocalCluster
import Model
import ObjectStore
import Postgres

/// `change-relay`, compared with librdkafka that produces the same bytes from memory.
struct BenchRelay: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "relay", abstract: "Compare change-relay with librdkafka and with reading alone.")

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of objects to publish.") var objects = 100_000

    func validate() throws { try BenchOptions.check(objects, in: 1...10_000_000, "--objects") }

    static let targets = [
        BenchTarget(name: "relay / PostgreSQL's pages alone", figure: "relay", reference: "PostgreSQL's pages alone"),
        BenchTarget(
            name: "relay / librdkafka alone", figure: "relay", reference: "librdkafka alone", limit: .atLeast(0.7)),
    ]

    private static let referenceTopic = "bench.reference"
    /// The relay's page size.
    private static let pageCount = 4_000

    var installation: BenchInstallation.Configuration {
        BenchInstallation.Configuration(topics: [Self.referenceTopic: Topics.entry.partitions])
    }

    final class Fixture {
        let objects: BenchObjects
        /// The fields as PostgreSQL returns them.
        let values: [UUID: [UInt8]]
        var connection: Connection

        init(_ installation: BenchInstallation, count: Int) throws {
            var connection = try Connection(installation.cluster.conninfo)
            objects = try BenchObjects(installation.environment, count: count, on: &connection)
            try objects.store(on: &connection)
            values = Dictionary(
                uniqueKeysWithValues: try connection.run("SELECT id, fields FROM store.object")
                    .decode(UUID.self, CanonicalJSON.self).map { ($0, $1.bytes) })
            self.connection = connection
        }
    }

    func setUp(_ installation: BenchInstallation) async throws -> Fixture { try Fixture(installation, count: objects) }

    func measure(
        _ fixture: Fixture, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        report.add("librdkafka alone", "events/s", try produce(fixture, to: installation.cluster.brokers))
        let before = installation.processorTime(of: .database)
        let rate = try readPages(fixture, in: installation.environment)
        let processorTime = installation.processorTime(of: .database) - before
        report.add("PostgreSQL's pages alone", "events/s", rate)
        report.add("PostgreSQL's processor time, pages alone", "µs/event", processorTime / Double(objects) * 1e6)
        report.add("relay", "events/s", try await relay(fixture, on: installation))
    }

    /// Produces the relay's keys, headers and values without PostgreSQL.
    private func produce(_ fixture: Fixture, to brokers: String) throws -> Double {
        var producer = try Producer(brokers: brokers)
        let messages = fixture.objects.items.map { item in
            let key = item.key.id.text
            let headers: [(name: StaticString, value: [UInt8])] = [
                ("ce_specversion", EventHeaders.specVersionValue), ("ce_id", "1:1:\(item.position)"),
                ("ce_source", "/environments/1"), ("ce_type", EventHeaders.type(of: .timeEntry)),
                ("ce_time", "2026-01-01T00:00:00.000Z"), ("ce_subject", "\(item.path)/TimeEntry/\(key)"),
                ("ce_partitionkey", key), ("content-type", EventHeaders.contentTypeValue),
                ("fieldpost-position", "\(item.position)"), ("fieldpost-edit-position", "\(item.position)"),
                ("fieldpost-generation", "1"), ("fieldpost-epoch", "1"),
            ].map { ($0.0, Array($0.1.utf8)) }
            return (key: Array(key.utf8), headers: headers, value: fixture.values[item.key.id] ?? [])
        }
        let start = ContinuousClock.now
        for message in messages {
            var headers = Headers(capacity: message.headers.count)
            for header in message.headers { unsafe headers.add(header.name, header.value.span.bytes) }
            try unsafe producer.send(
                Self.referenceTopic, key: message.key.span.bytes, value: message.value.span.bytes, headers: headers)
        }
        guard producer.flush(waitMax: .seconds(120)) else { throw ClusterFailure("producer flush timed out") }
        let time = ContinuousClock.now - start
        _ = producer.deliveries(waitMax: .zero)
        return Double(messages.count) / time.inSeconds
    }

    /// Reads the relay's pages and discards them.
    private func readPages(_ fixture: Fixture, in environment: EnvironmentID) throws -> Double {
        let kinds = Topics.all.flatMap(\.kinds)
        let start = ContinuousClock.now
        var (position, count) = (Int64(0), 0)
        while true {
            let rows = try fixture.connection.run(
                Feed.changes(in: environment, after: position, kinds: kinds, countMax: Self.pageCount))
            count += rows.count
            guard rows.count == Self.pageCount else { break }
            position = try rows[rows.count - 1].value(0)
        }
        return Double(count) / (ContinuousClock.now - start).inSeconds
    }

    /// Publishes all objects; the first page is not measured, because it includes the start of the process.
    private func relay(_ fixture: Fixture, on installation: BenchInstallation) async throws -> Double {
        try fixture.connection.run("UPDATE realm.relay SET position = 0")
        let target = try fixture.connection.run("SELECT max(position) FROM store.change")[0].decode(Int64.self)
        let process = try installation.start(Services.changeRelay)
        defer { process.kill9() }
        var (first, start) = (Int64(0), ContinuousClock.now)
        try await waitUntil("the relay has published all objects", within: .seconds(300), interval: .milliseconds(5)) {
            guard process.isRunning else { throw ClusterFailure(process.logTail()) }
            let position =
                try fixture.connection.run("SELECT position FROM realm.relay").first?.decode(Int64.self) ?? 0
            if first == 0, position > 0 { (first, start) = (position, .now) }
            return position >= target
        }
        let time = ContinuousClock.now - start
        let count = try fixture.connection.run(
            "SELECT count(*) FROM store.object WHERE position > \(first)")[0].decode(Int64.self)
        return Double(count) / time.inSeconds
    }
}

import ArgumentParser
import FoundationEssentials
import Kafka
import Logging
import Model
import Pipeline
import Postgres
import Realms

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
        let environment = EnvironmentID(
            rawValue: try admin.run("INSERT INTO realm.environment (name) VALUES ('bench') RETURNING id")[0].value(0))
        let events = try BenchEvents(environment, count: objects * 2, on: place.conninfo)
        // The second half names every object once, in an order that mixes realms.
        let items = Array(events.items[objects...])
        try events.store(items, on: &admin)

        var figures = BenchFigures()
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            figures.add("librdkafka alone", "events/s", try produceAlone(items, events, place))
            figures.add("relay", "events/s", try relay(place, &admin))
        }
        print(figures.table(title: "relay, medians of \(options.rounds) rounds, on \(place.brokerName)"))
        print(
            BenchFigures.ratio(
                "relay / librdkafka alone", figures.median("relay") / figures.median("librdkafka alone"), aim: 0.7))
    }

    /// The same keys, headers and values as the relay's, without PostgreSQL.
    private func produceAlone(_ items: [BenchEvents.Item], _ events: BenchEvents, _ place: BenchPlace) throws -> Double
    {
        var producer = try Producer(brokers: place.brokers)
        let messages = items.map { item in
            let key = item.key.id.text
            let headers: [(name: String, value: [UInt8])] = [
                (EventHeaders.specVersion, EventHeaders.specVersionValue),
                (EventHeaders.id, "1:1:\(item.position)"), (EventHeaders.source, "/fieldpost/bench"),
                (EventHeaders.type, EventHeaders.type(of: .timeEntry)), (EventHeaders.time, "2026-01-01T00:00:00.000Z"),
                (EventHeaders.subject, "\(item.path)/TimeEntry/\(key)"), (EventHeaders.partitionKey, key),
                (EventHeaders.contentType, EventHeaders.contentTypeValue), (EventHeaders.position, "\(item.position)"),
                (EventHeaders.editPosition, "\(item.position)"), (EventHeaders.generation, "1"),
                (EventHeaders.epoch, "1"),
            ].map { ($0.0, Array($0.1.utf8)) }
            return (key: Array(key.utf8), headers: headers, value: item.fields)
        }
        let start = ContinuousClock.now
        for message in messages {
            try producer.send("bench.limit", key: message.key, value: message.value, headers: message.headers)
        }
        guard producer.flush(waitMax: .seconds(120)) else {
            throw BenchPlace.Missing(description: "the broker is too slow")
        }
        let time = ContinuousClock.now - start
        _ = producer.deliveries(waitMax: .zero)
        return Double(messages.count) / time.seconds
    }

    private func relay(_ place: BenchPlace, _ admin: inout Connection) throws -> Double {
        try admin.run("UPDATE realm.relay SET position = 0")
        let target: Int64 = try admin.run("SELECT max(position) FROM realm.change")[0].value(0)
        var logger = Logger(label: "bench")
        logger.logLevel = .error
        var relay = try Relay(conninfo: place.conninfo, brokers: place.brokers, properties: [:], logger: logger)
        // Connections and metadata are there before the clock starts, as they were for the producer's second round.
        let start = ContinuousClock.now
        while true {
            _ = try relay.step(waitMax: .milliseconds(2))
            let rows = try admin.run("SELECT position FROM realm.relay")
            if rows.count == 1, try rows[0].value(0, as: Int64.self) >= target { break }
        }
        return Double(objects) / (ContinuousClock.now - start).seconds
    }
}

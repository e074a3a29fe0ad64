import ArgumentParser
import CommandLineSupport
import FoundationEssentials
import Kafka
import ObjectStore
import Postgres
import ServiceSettings

/// What a command could not do, in one line.
struct CommandFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
    init(_ error: KafkaError) {
        description = "the broker \(error.advice == nil ? "does not answer" : "refuses"): \(error)"
    }
}

/// Where PostgreSQL is.
struct DatabaseOptions: ParsableArguments {
    @Option(
        name: .customLong("database"),
        help: ArgumentHelp("PostgreSQL connection string. (default: FIELDPOST_DATABASE_URL)", valueName: "url"))
    var url: String?

    /// - Parameter check: `nil` for what sets a database right.
    func connect(
        _ limits: Limits = Limits(), check: StaticString? = Lineage.check
    ) throws -> Connection {
        guard let url = url ?? ProcessInfo.processInfo.environment[Setting.databaseURL.variable], !url.isEmpty else {
            throw ValidationError("give --database or set \(Setting.databaseURL.variable)")
        }
        return try Connection(url, limits: limits, check: check)
    }
}

/// Where Kafka is. `FIELDPOST_KAFKA_…` sets librdkafka's properties, as for the services.
struct BrokerOptions: ParsableArguments {
    @Option(help: "Kafka brokers, host:port separated by commas. (default: FIELDPOST_KAFKA_BROKERS or 127.0.0.1:9092)")
    var brokers: String?

    /// How long one answer of the brokers is waited for.
    static let waitMax = Duration.seconds(5)

    func resolved() throws -> (brokers: String, properties: [String: String]) {
        // Only Kafka's variables: what the services and the demo are told is none of the command line's business.
        let variables = ProcessInfo.processInfo.environment.filter { $0.key.hasPrefix("FIELDPOST_KAFKA_") }
        let configuration = try Configuration([.kafkaBrokers, .kafkaProperties], environment: variables)
        return (
            try brokers ?? configuration.text(.kafkaBrokers),
            try configuration.properties(under: "kafka.", problem: Property.problem)
        )
    }

    func admin() throws -> Admin {
        let (brokers, properties) = try resolved()
        return try Admin(brokers: brokers, properties: properties, waitMax: Self.waitMax)
    }
}

/// How an answer is printed.
struct OutputOptions: ParsableArguments {
    @Flag(help: "Print JSON for scripts instead of a table.") var json = false

    /// Prints `rows` as one JSON array, or the table.
    func show<Row: Encodable>(_ rows: [Row], _ table: @autoclosure () -> Table) throws {
        if json { try printJSON(rows) } else { print(table().text, terminator: "") }
    }
}

func printJSON(_ value: some Encodable) throws {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    print(String(decoding: try encoder.encode(value), as: UTF8.self))
}

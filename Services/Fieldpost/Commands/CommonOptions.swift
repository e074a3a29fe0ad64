import ArgumentParser
import Audit
import CommandLineSupport
import FoundationEssentials
import Kafka
import ObjectStore
import Postgres
import ServiceSettings

/// The failure of a command, in one line.
struct CommandFailure: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
    init(_ error: KafkaError) {
        description = "the broker \(error.advice == nil ? "does not respond" : "rejects the request"): \(error)"
    }
}

/// Validates that an option's number is within its range; `nil`: the option is not given.
///
/// - Parameter unit: The unit of the range for the error: `seconds`.
/// - Throws: `ValidationError` if the number is outside the range.
func validateRange<Number: BinaryInteger>(
    _ option: String, _ number: Number?, in range: ClosedRange<Number>, unit: String = ""
) throws {
    guard let number, !range.contains(number) else { return }
    let limits = "\(range.lowerBound) to \(range.upperBound)" + (unit.isEmpty ? "" : " \(unit)")
    throw ValidationError("\(option) must be from \(limits), not \(number)")
}

/// Validates the name of an environment or integration.
///
/// - Throws: `ValidationError` if it is invalid.
func validateName(_ name: String) throws {
    let isName = { (byte: UInt8) in (97...122).contains(byte) || (48...57).contains(byte) }
    guard let first = name.utf8.first, isName(first), name.utf8.count <= 63,
        name.utf8.allSatisfy({ isName($0) || $0 == UInt8(ascii: "-") })
    else {
        throw ValidationError("the name must have 1 to 63 lower-case letters, digits and hyphens, not \(name)")
    }
}

/// The connection to PostgreSQL.
struct DatabaseOptions: ParsableArguments {
    @Option(
        name: .customLong("database"),
        help: ArgumentHelp("PostgreSQL connection string. (default: FIELDPOST_DATABASE_URL)", valueName: "url"))
    var url: String?

    /// Whether the connection is set by option or variable.
    var isGiven: Bool {
        !(url ?? ProcessInfo.processInfo.environment[Setting.databaseURL.variable] ?? "").isEmpty
    }

    /// - Parameter check: The check of a new session; `nil` for commands that repair the database itself.
    func connect(_ limits: Limits = Limits(), check: StaticString? = Lineage.check) throws -> Connection {
        guard let url = url ?? ProcessInfo.processInfo.environment[Setting.databaseURL.variable], !url.isEmpty else {
            throw ValidationError("give --database or set \(Setting.databaseURL.variable)")
        }
        return try Connection(url, limits: limits, check: check)
    }
}

/// The connection to Kafka. `FIELDPOST_KAFKA_…` sets librdkafka's properties, as for the services.
struct BrokerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Kafka brokers. (default: FIELDPOST_KAFKA_BROKERS or 127.0.0.1:9092)", valueName: "host:port,…"))
    var brokers: String?

    /// Maximum time to wait for one response of the brokers.
    static let waitMax = Duration.seconds(5)

    func resolved() throws -> (brokers: String, properties: [String: String]) {
        // Only Kafka's variables: settings of services and of the demo must not fail a command.
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

/// The output format.
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

extension Administrator {
    /// The operating system's user that runs the command.
    static let commandLine = Administrator(actor: "cli:\(ProcessInfo.processInfo.userName)", address: here)

    /// The address of the SSH client, otherwise this machine's name.
    private static var here: String {
        let connection = ProcessInfo.processInfo.environment["SSH_CONNECTION"]
        return connection?.split(separator: " ").first.map(String.init) ?? ProcessInfo.processInfo.hostName
    }
}

import ArgumentParser
import CommandLineSupport
import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import ServiceRuntime
import ServiceSettings
import Telemetry

/// `fieldpost check`: recomputes what follows from other data, and tells what differs.
struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Recompute what follows from other data, and tell what is not so.",
        discussion: """
            It reads PostgreSQL, changes nothing, and may be run at any time, a little at a time. What messages that \
            are on their way will still change is no fault: it looks twice, tells only what differs both times at the \
            same positions, and says of what may still go away by itself what is on its way. Of brokers it asks how \
            far groups are. Ends with status 1 when something differs. It looks at: \
            \(CheckedPart.allCases.map { "\($0.rawValue) (\($0.meaning))" }.joined(separator: "; ")).
            """)

    /// What is looked at, and how thoroughly.
    struct Selection: ParsableArguments {
        @Option(help: "Only this environment.") var environment: String?
        @Option(help: "Only this; may be repeated. (default: everything)") var what: [CheckedPart] = []
        @Option(help: "At most so many differences of each sort in an environment.") var limit = 1_000
        @Option(help: "Seconds to wait between the two looks for what is on its way, at most.") var settle = 10
        @OptionGroup var database: DatabaseOptions
        @Option(help: "Kafka brokers to ask how far groups are. (default: FIELDPOST_KAFKA_BROKERS, else none)")
        var brokers: String?
        @OptionGroup var output: OutputOptions

        func validate() throws {
            guard (1...100_000).contains(limit) else { throw ValidationError("--limit is 1…100000") }
            guard (0...3_600).contains(settle) else { throw ValidationError("--settle is 0…3600") }
        }

        func check(on connection: inout Connection) throws -> ConsistencyCheck {
            let all = try connection.run(
                "SELECT e.id, e.name, \(EnvironmentCounter.works) FROM realm.environment e ORDER BY e.name"
            ).decode(EnvironmentID.self, String.self, Bool.self).map { (id: $0, name: $1, works: $2) }
            if let environment {
                guard let one = all.first(where: { $0.name == environment }) else {
                    throw CommandFailure("there is no environment \(environment)")
                }
                guard one.works else { throw CommandFailure("\(environment) is arriving here, and has not begun") }
            }
            let some = all.filter { $0.works && (environment == nil || environment == $0.name) }.map {
                (id: $0.id, name: $0.name)
            }
            var check = ConsistencyCheck(
                environments: some, parts: CheckedPart.allCases.filter { what.isEmpty || what.contains($0) },
                countMax: limit, settleMax: .seconds(settle))
            check.progress = Self.progress
            check.transport = try transport()
            return check
        }

        private func transport() throws -> Settling.Transport? {
            var options = BrokerOptions()
            options.brokers = brokers
            let isSet = ProcessInfo.processInfo.environment[Setting.kafkaBrokers.variable]?.isEmpty == false
            guard brokers != nil || isSet else { return nil }
            let (addresses, properties) = try options.resolved()
            return Settling.Transport(
                brokers: addresses, properties: properties,
                waitMax: min(BrokerOptions.waitMax, .seconds(max(1, settle))))
        }

        /// A line that is written over, for who waits at a terminal.
        private static func progress(_ done: Int, _ total: Int) {
            guard isatty(STDERR_FILENO) == 1, total > 1 else { return }
            let end = done == total ? "\r\u{1B}[K" : ""
            FileHandle.standardError.write(Data("\r\(done) of \(total) parts\(end)".utf8))
        }
    }

    @OptionGroup var selection: Selection

    func run() throws {
        var connection = try selection.database.connect(ConsistencyCheck.limits)
        let outcome = try selection.check(on: &connection).run(on: &connection)
        if selection.output.json {
            try printJSON(outcome)
        } else {
            Self.show(outcome, hint: "; what can be mended: fieldpost repair --dry-run")
        }
        if !outcome.inconsistencies.isEmpty { throw ExitCode.failure }
    }

    /// - Parameter hint: What to do about differences, after how many there are.
    static func show(_ outcome: ConsistencyCheck.Outcome, hint: String = "") {
        let rows = outcome.inconsistencies
        if !rows.isEmpty { print(Inconsistency.table(rows, empty: "").text, terminator: "") }
        for rest in outcome.rests where !rest.isAtRest || rest.dead > 0 {
            print(
                "\(rest.environment) is not at rest. Positions to publish: \(rest.unpublished); keys that wait: "
                    + "\(rest.parked); dead keys: \(rest.dead)")
        }
        if outcome.isCut { print("there may be more: --limit") }
        if rows.isEmpty {
            print(Terminal.coloured("nothing differs", .green))
        } else {
            let count = rows.count == 1 ? "1 difference" : "\(rows.count) differences"
            print(Terminal.coloured(count, .red) + hint)
        }
    }
}

import ArgumentParser
import CommandLineSupport
import Foundation
import Model
import ObjectStore
import Postgres
import ServiceSettings

/// `fieldpost check`: verifies derived data and reports inconsistencies.
struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Verify derived data and report inconsistencies.",
        discussion: """
            Reads PostgreSQL in small slices, changes nothing, and can run at any time. It runs two passes and reports \
            only inconsistencies found by both at the same positions. It marks those that work in flight may still \
            resolve. With --brokers it also reads the groups' committed offsets. Exits with status 1 if there are \
            inconsistencies. Checks: \
            \(CheckTarget.allCases.map { "\($0.rawValue) (\($0.summary))" }.joined(separator: "; ")).
            """)

    /// The options that select environments and checks.
    struct Selection: ParsableArguments {
        @Option(help: "Limit to this environment.", completion: Completion.environments)
        var environment: String?
        @Option(help: "Run only this check; may be repeated. (default: all)") var only: [CheckTarget] = []
        @Option(help: "Maximum inconsistencies per check and environment.") var limit = 1_000
        @Option(help: "Maximum seconds to wait between the passes for work in flight.") var settle = 10
        @OptionGroup var database: DatabaseOptions
        @Option(help: "Kafka brokers, optional. (default: FIELDPOST_KAFKA_BROKERS)") var brokers: String?
        @OptionGroup var output: OutputOptions

        func validate() throws {
            try validateRange("--limit", limit, in: 1...100_000)
            try validateRange("--settle", settle, in: 0...3_600, unit: "seconds")
        }

        func check(on connection: inout Connection) throws -> ConsistencyCheck {
            let all = try connection.run(
                "SELECT e.id, e.name, \(EnvironmentCounter.works) FROM realm.environment e ORDER BY e.name"
            ).decode(EnvironmentID.self, String.self, Bool.self).map { (id: $0, name: $1, works: $2) }
            if let environment {
                guard let selected = all.first(where: { $0.name == environment }) else {
                    throw CommandFailure("environment \(environment) does not exist")
                }
                guard selected.works else {
                    throw CommandFailure("\(environment) is an incomplete or inactive copy here: activate it first")
                }
            }
            let selected = all.filter { $0.works && (environment == nil || environment == $0.name) }.map {
                (id: $0.id, name: $0.name)
            }
            var check = ConsistencyCheck(
                environments: selected, targets: CheckTarget.allCases.filter { only.isEmpty || only.contains($0) },
                countMax: limit, settleMax: .seconds(settle))
            check.progress = { done, total in
                if total > 1 { Terminal.showProgress(done < total ? "\(done) of \(total) slices" : "") }
            }
            check.transport = try transport()
            return check
        }

        private func transport() throws -> InFlightWork.Transport? {
            var options = BrokerOptions()
            options.brokers = brokers
            let isSet = ProcessInfo.processInfo.environment[Setting.kafkaBrokers.variable]?.isEmpty == false
            guard brokers != nil || isSet else { return nil }
            let (addresses, properties) = try options.resolved()
            return InFlightWork.Transport(
                brokers: addresses, properties: properties,
                waitMax: min(BrokerOptions.waitMax, .seconds(max(1, settle))))
        }
    }

    @OptionGroup var selection: Selection

    func run() throws {
        var connection = try selection.database.connect(ConsistencyCheck.limits)
        let outcome = try selection.check(on: &connection).run(on: &connection)
        if selection.output.json {
            try printJSON(outcome)
        } else {
            Self.show(outcome, hint: "; list possible repairs with: fieldpost repair --dry-run")
        }
        if !outcome.inconsistencies.isEmpty { throw ExitCode.failure }
    }

    /// - Parameter hint: The next step, printed after the number of inconsistencies.
    static func show(_ outcome: ConsistencyCheck.Outcome, hint: String = "") {
        let rows = outcome.inconsistencies
        if !rows.isEmpty { print(Inconsistency.table(rows).text, terminator: "") }
        for backlog in outcome.rests where !backlog.isQuiescent || backlog.dead > 0 {
            print(
                "\(backlog.environment) has pending work: \(backlog.unpublished) positions to publish, "
                    + "\(backlog.parked) deferred keys, \(backlog.dead) dead-lettered keys")
        }
        if outcome.isCut { print("the limit was reached, there may be more: raise --limit") }
        if rows.isEmpty {
            print(Terminal.coloured("no inconsistencies", .green))
        } else {
            let count = rows.count == 1 ? "1 inconsistency" : "\(rows.count) inconsistencies"
            print(Terminal.coloured(count, .red) + hint)
        }
    }
}

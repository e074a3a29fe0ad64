import ArgumentParser
import CommandLineSupport
import Postgres

/// `fieldpost repair`: has inconsistencies reprocessed, reconciled or rewritten.
struct RepairCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "repair", abstract: "Repair the inconsistencies that fieldpost check reports.",
        discussion: """
            Runs fieldpost check, lists the inconsistencies and prompts for confirmation. Objects of a service are \
            never written by this command: the owning service reprocesses their keys (they are deferred and due \
            immediately), or runs its full comparison with the back end or defect tracker, so it must be running. The \
            command itself rewrites rows that no service owns: references to images and pointers of the change log, \
            and deletes memberships whose person or team was deleted. Then it checks again and reports the result of \
            each repair. Exits with status 1 if an inconsistency remains. Every repair is recorded in the audit log.
            """)
    @OptionGroup var selection: CheckCommand.Selection
    @Flag(help: "Skip the confirmation prompt.") var yes = false
    @Flag(help: "List the repairs without running them.") var dryRun = false
    @Option(help: "Maximum seconds to wait for services.") var wait = 60

    func validate() throws {
        try validateRange("--wait", wait, in: 0...3_600, unit: "seconds")
    }

    /// The result of one repair.
    struct Result: Encodable {
        let inconsistency: Inconsistency
        let isRepaired: Bool
        /// The reason if it is not repaired.
        let reason: String?
    }

    func run() throws {
        var connection = try selection.database.connect(ConsistencyCheck.limits)
        let check = try selection.check(on: &connection)
        let before = try check.run(on: &connection)
        let rows = before.inconsistencies
        if rows.isEmpty {
            if selection.output.json { return try printJSON([Result]()) }
            return CheckCommand.show(before)
        }
        if !selection.output.json { CheckCommand.show(before) }
        if dryRun {
            if selection.output.json {
                try printJSON(rows.map { Result(inconsistency: $0, isRepaired: false, reason: "nothing was changed") })
            } else {
                Self.showMethods(rows)
            }
            throw ExitCode.failure
        }
        if !yes {
            let prompt = "Repair \(rows.count)? Type yes:"
            try Terminal.confirm(prompt, refusal: "nothing was changed", options: "--yes or --dry-run")
        }
        let repair = Repair(check.environments, by: .commandLine, waitMax: .seconds(wait))
        try repair.run(rows, on: &connection)
        let after = Set(try check.run(on: &connection).inconsistencies.map(Self.location))
        let results = try rows.map { row in
            let isRepaired = !after.contains(Self.location(row))
            return Result(
                inconsistency: row, isRepaired: isRepaired,
                reason: isRepaired ? nil : try repair.reason(why: row, on: &connection))
        }
        if selection.output.json { try printJSON(results) } else { Self.show(results) }
        if results.contains(where: { !$0.isRepaired }) { throw ExitCode.failure }
    }

    /// Identifies the location of an inconsistency, regardless of its fault and position: a location with another fault
    /// is not repaired.
    private static func location(_ row: Inconsistency) -> [String] { [row.environment, row.part.rawValue, row.key] }

    /// Prints the repair methods.
    private static func showMethods(_ rows: [Inconsistency]) {
        let targets = CheckTarget.allCases.filter { target in rows.contains { $0.part == target } }
        let table = Table(["CHECK", .right("COUNT"), "REPAIR"], targets) { target in
            [target.rawValue, String(rows.count { $0.part == target }), target.repairMethod.summary]
        }
        print(table.text, terminator: "")
        print("nothing was changed")
    }

    private static func show(_ results: [Result]) {
        let open = results.filter { !$0.isRepaired }
        print("\(results.count - open.count) repaired")
        if open.isEmpty { return }
        let table = Table(["NOT REPAIRED", "REASON"], open) { [$0.inconsistency.key, $0.reason ?? ""] }
        print(table.text, terminator: "")
    }
}

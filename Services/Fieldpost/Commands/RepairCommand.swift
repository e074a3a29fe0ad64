import ArgumentParser
import CommandLineSupport
import Essentials
import Foundation
import Model
import Postgres

/// `fieldpost repair`: has what differs be decided or written anew.
struct RepairCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "repair", abstract: "Have what fieldpost check finds be decided or written anew.",
        discussion: """
            It looks as fieldpost check does, shows what differs, and asks. It writes no service's objects: the \
            service that owns them decides their keys anew, as after any change (they are parked, due at once), or \
            compares them with the back end or the tracker of defects before its time, so it must be running. What \
            no service owns it writes itself: references to images, pointers of the change log, and that memberships \
            are no more whose person or team was removed. Then it looks again, and tells what is mended and what is \
            not, and why. Ends with status 1 when something still differs. Each repair is in the audit log.
            """)
    @OptionGroup var selection: CheckCommand.Selection
    @Flag(help: "Do not ask.") var yes = false
    @Flag(help: "Only say what would be mended.") var dryRun = false
    @Option(help: "Seconds to wait for services, at most.") var wait = 60

    func validate() throws {
        guard (0...3_600).contains(wait) else { throw ValidationError("--wait is 0…3600") }
    }

    /// What came of a difference.
    struct Result: Encodable {
        let inconsistency: Inconsistency
        let isMended: Bool
        /// Why it is not.
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
            if selection.output.json { try printJSON(before) } else { Self.showWays(rows) }
            throw ExitCode.failure
        }
        try ask(rows.count)
        let repair = Repair(check.environments, by: .commandLine, waitMax: .seconds(wait))
        try repair.mend(rows, on: &connection)
        let after = Set(try check.run(on: &connection).inconsistencies.map(Self.place))
        let results = try rows.map { row in
            let isMended = !after.contains(Self.place(row))
            return Result(
                inconsistency: row, isMended: isMended,
                reason: isMended ? nil : try repair.reason(why: row, on: &connection))
        }
        if selection.output.json { try printJSON(results) } else { Self.show(results) }
        if results.contains(where: { !$0.isMended }) { throw ExitCode.failure }
    }

    private func ask(_ count: Int) throws {
        if yes { return }
        guard isatty(STDIN_FILENO) == 1 else { throw ValidationError("nobody can be asked: give --yes or --dry-run") }
        print("Mend \(count)? Type yes: ", terminator: "")
        fflush(nil)
        guard readLine() == "yes" else { throw CommandFailure("nothing was changed") }
    }

    /// Where a difference is, whatever it says and at whatever position it is seen: where another one is left, nothing
    /// is mended.
    private static func place(_ row: Inconsistency) -> [String] { [row.environment, row.part.rawValue, row.key] }

    /// What would be done.
    private static func showWays(_ rows: [Inconsistency]) {
        var table = Table([("WHAT", .left), ("DIFFERENCES", .right), ("WOULD BE MENDED SO", .left)], empty: "")
        for part in CheckedPart.allCases {
            let count = rows.count { $0.part == part }
            if count > 0 { table.add([part.rawValue, String(count), part.repair.meaning]) }
        }
        print(table.text, terminator: "")
        print("nothing was changed")
    }

    private static func show(_ results: [Result]) {
        let open = results.filter { !$0.isMended }
        print("\(results.count - open.count) mended")
        if open.isEmpty { return }
        var table = Table([("NOT MENDED", .left), ("WHY", .left)], empty: "")
        for result in open { table.add([result.inconsistency.key, result.reason ?? ""]) }
        print(table.text, terminator: "")
    }
}

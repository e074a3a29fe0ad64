import AdminQueries
import Algorithms
import ArgumentParser
import CommandLineSupport
import Foundation
import Postgres

extension ParkedCommand {
    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Try parked keys again now, with all their attempts.",
            discussion: """
                Of a few keys it is waited for what comes of them, and told: handled, with the object as it is then, \
                or parked again, and why: then the exit status is 1, as it is when one was parked again before it was \
                tried. A message that could not be read cannot be tried \
                again: discard it.
                """)
        @OptionGroup var selection: Selection
        @Flag(help: "All of them.") var all = false
        @Flag(help: "Only say what would be tried again.") var dryRun = false
        @OptionGroup var guarded: Guarded
        @Option(help: "So many seconds it is waited for what comes of up to 20 keys; 0: not at all.") var wait = 10
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            try selection.requireSome(all: all)
            guard (0...600).contains(wait) else { throw ValidationError("--wait is 0…600 seconds") }
        }

        func run() throws {
            var connection = try database.connect()
            var selected = try selection.select(on: &connection)
            selected.isReadable = true
            if dryRun { return try rehearse(selected, "tried again", output, on: &connection) }
            var progress = Progress()
            var retried: [ParkedStore.Row] = []
            func retry(_ rows: [ParkedStore.Row], _ connection: inout Connection) throws {
                progress.add(try ParkedStore.retry(rows.map { .init($0) }, by: .commandLine, on: &connection))
                if retried.count <= RetryOutcome.keyCountMax { retried += rows }
            }
            if let rows = try guarded.rows(selected, on: &connection) {
                for page in rows.chunks(ofCount: ParkedStore.pageCountMax) { try retry(Array(page), &connection) }
            } else {
                try ParkedStore.forEachPage(selected, on: &connection) { try retry($0, &$1) }
            }
            if progress.changed == ParkedStore.Changed(), !selection.keys.isEmpty {
                selected.isReadable = false
                if try ParkedStore.count(selected, on: &connection) > 0 {
                    throw CommandFailure("it could not be read, and is not tried again: fieldpost parked discard")
                }
            }
            try answer(progress.changed, "tried again", selection, output)
            var isWhole = progress.changed.otherCount == 0
            if wait > 0, !output.json, (1...RetryOutcome.keyCountMax).contains(retried.count) {
                let outcomes = try RetryOutcome.wait(for: retried, within: .seconds(wait), on: &connection)
                for (row, outcome) in zip(retried, outcomes) { print(Table.oneLine(outcome.text(of: row.key))) }
                isWhole = isWhole && !outcomes.contains { $0.state == .parkedAgain }
            }
            // What is told of them says why.
            if !isWhole { throw ExitCode.failure }
        }
    }

    struct Discard: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forget parked keys; their objects stay as they are.",
            discussion: """
                A newer event of a key is handled as always. One that was parked again meanwhile stays, and the exit \
                status is 1.
                """)
        @OptionGroup var selection: Selection
        @Flag(help: "All of them.") var all = false
        @Flag(help: "Only say what would be discarded.") var dryRun = false
        @Flag(help: "Do not ask.") var yes = false
        @OptionGroup var guarded: Guarded
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws { try selection.requireSome(all: all) }

        func run() throws {
            var connection = try database.connect()
            let selected = try selection.select(on: &connection)
            if dryRun { return try rehearse(selected, "discarded", output, on: &connection) }
            var progress = Progress()
            func discard(_ rows: [ParkedStore.Row], _ connection: inout Connection) throws {
                progress.add(try ParkedStore.discard(rows.map { .init($0) }, by: .commandLine, on: &connection))
            }
            let seen = try guarded.rows(selected, on: &connection)
            if yes, seen == nil {
                try ParkedStore.forEachPage(selected, on: &connection) { try discard($0, &$1) }
                return try tell(progress.changed)
            }
            let rows = try seen ?? ParkedStore.load(selected, countMax: ParkedSeen.countMax, on: &connection)
            if !yes, !rows.isEmpty {
                guard isatty(STDIN_FILENO) == 1 else { throw ValidationError("nobody can be asked: give --yes") }
                print(ParkedStore.table(rows).text, terminator: "")
                print("Discard \(rows.count)? Type yes: ", terminator: "")
                fflush(nil)
                guard readLine() == "yes" else { throw CommandFailure("nothing was discarded") }
            }
            // Only what was shown: what was parked meanwhile stays.
            for page in rows.chunks(ofCount: ParkedStore.pageCountMax) { try discard(Array(page), &connection) }
            try tell(progress.changed)
        }

        private func tell(_ changed: ParkedStore.Changed) throws {
            try answer(changed, "discarded", selection, output)
            if changed.otherCount > 0 { throw ExitCode.failure }
        }
    }
}

/// How far a change of many keys is, for who waits at a terminal.
private struct Progress {
    private(set) var changed = ParkedStore.Changed()
    private var pages = 0

    mutating func add(_ more: ParkedStore.Changed) {
        changed += more
        pages += 1
        guard pages > 1, isatty(STDERR_FILENO) == 1 else { return }
        FileHandle.standardError.write(Data("\(changed.count) keys so far\n".utf8))
    }
}

/// Shows what would be changed: the oldest of them, and how many there are.
private func rehearse(
    _ selection: ParkedStore.Selection, _ verb: String, _ output: OutputOptions, on connection: inout Connection
) throws {
    let shownMax = 1_000
    let rows = try ParkedStore.load(selection, countMax: shownMax, on: &connection)
    if output.json { return try printJSON(rows) }
    let seen = try ParkedSeen.rows(selection, on: &connection)
    let count = try seen?.count ?? ParkedStore.count(selection, on: &connection)
    print(ParkedStore.table(rows).text, terminator: "")
    if count > rows.count { print("and \(count - rows.count) more") }
    if let seen, count > 0 { print("these and no others, as they are now: --seen \(ParkedSeen.text(seen))") }
    print("\(count) \(count == 1 ? "key" : "keys") would be \(verb); nothing was changed")
}

private func answer(
    _ changed: ParkedStore.Changed, _ verb: String, _ selection: ParkedCommand.Selection, _ output: OutputOptions
) throws {
    if changed == ParkedStore.Changed(), !selection.keys.isEmpty { throw CommandFailure("no such key is parked") }
    let (count, others) = (changed.count, changed.otherCount)
    if output.json { return try printJSON(["count": count, "parkedAgain": others]) }
    let stay =
        switch others {
        case 0: ""
        case 1: "; 1 was parked again meanwhile, and stays as it is: look at it again"
        default: "; \(others) were parked again meanwhile, and stay as they are: look at them again"
        }
    print("\(count) \(count == 1 ? "key is" : "keys are") \(verb)\(stay)")
}

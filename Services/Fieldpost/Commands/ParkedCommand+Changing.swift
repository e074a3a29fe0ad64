import Algorithms
import ArgumentParser
import Commands
import Foundation
import Operations
import Postgres

extension ParkedCommand {
    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Try parked keys again now, with all their attempts.",
            discussion: """
                Of a few keys it is waited for what comes of them, and told: handled, with the object as it is then, \
                or parked again, and why. A message that could not be read cannot be tried again: discard it.
                """)
        @OptionGroup var selection: Selection
        @Flag(help: "All of them.") var all = false
        @Flag(help: "Only say what would be tried again.") var dryRun = false
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
            try ParkedStore.forEachPage(selected, on: &connection) { rows, connection in
                progress.add(try ParkedStore.retry(rows.map(\.name), by: .commandLine, on: &connection))
                if retried.count <= RetryOutcome.keyCountMax { retried += rows }
            }
            if progress.count == 0, !selection.keys.isEmpty {
                selected.isReadable = false
                if try ParkedStore.count(selected, on: &connection) > 0 {
                    throw CommandFailure("it could not be read, and is not tried again: fieldpost parked discard")
                }
            }
            try answer(progress.count, "tried again", selection, output)
            guard wait > 0, !output.json, (1...RetryOutcome.keyCountMax).contains(retried.count) else { return }
            for outcome in try RetryOutcome.wait(for: retried, within: .seconds(wait), on: &connection) {
                print(Table.oneLine(outcome.text))
            }
        }
    }

    struct Discard: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Forget parked keys; their objects stay as they are.",
            discussion: "A newer event of a key is handled as always.")
        @OptionGroup var selection: Selection
        @Flag(help: "All of them.") var all = false
        @Flag(help: "Only say what would be discarded.") var dryRun = false
        @Flag(help: "Do not ask.") var yes = false
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        private static let askedCountMax = 100_000

        func validate() throws { try selection.requireSome(all: all) }

        func run() throws {
            var connection = try database.connect()
            let selected = try selection.select(on: &connection)
            if dryRun { return try rehearse(selected, "discarded", output, on: &connection) }
            var progress = Progress()
            if yes {
                try ParkedStore.forEachPage(selected, on: &connection) { rows, connection in
                    progress.add(try ParkedStore.discard(rows.map(\.name), by: .commandLine, on: &connection))
                }
                return try answer(progress.count, "discarded", selection, output)
            }
            let rows = try ParkedStore.load(selected, countMax: Self.askedCountMax, on: &connection)
            if !rows.isEmpty {
                guard isatty(STDIN_FILENO) == 1 else { throw ValidationError("nobody can be asked: give --yes") }
                print(ParkedStore.table(rows).text, terminator: "")
                print("Discard \(rows.count)? Type yes: ", terminator: "")
                fflush(nil)
                guard readLine() == "yes" else { throw CommandFailure("nothing was discarded") }
            }
            // Only what was shown: what was parked meanwhile stays.
            for page in rows.chunks(ofCount: ParkedStore.pageCountMax) {
                progress.add(try ParkedStore.discard(page.map(\.name), by: .commandLine, on: &connection))
            }
            try answer(progress.count, "discarded", selection, output)
        }
    }
}

/// How far a change of many keys is, for who waits at a terminal.
private struct Progress {
    private(set) var count = 0
    private var pages = 0

    mutating func add(_ more: Int) {
        count += more
        pages += 1
        guard pages > 1, isatty(STDERR_FILENO) == 1 else { return }
        FileHandle.standardError.write(Data("\(count) keys so far\n".utf8))
    }
}

/// Shows what would be changed: the oldest of them, and how many there are.
private func rehearse(
    _ selection: ParkedStore.Selection, _ verb: String, _ output: OutputOptions, on connection: inout Connection
) throws {
    let shownMax = 1_000
    let rows = try ParkedStore.load(selection, countMax: shownMax, on: &connection)
    if output.json { return try printJSON(rows) }
    let count = try ParkedStore.count(selection, on: &connection)
    print(ParkedStore.table(rows).text, terminator: "")
    if count > rows.count { print("and \(count - rows.count) more") }
    print("\(count) \(count == 1 ? "key" : "keys") would be \(verb); nothing was changed")
}

private func answer(
    _ count: Int, _ verb: String, _ selection: ParkedCommand.Selection, _ output: OutputOptions
) throws {
    if count == 0, !selection.keys.isEmpty { throw CommandFailure("no such key is parked") }
    if output.json { return try printJSON(["count": count]) }
    print("\(count) \(count == 1 ? "key is" : "keys are") \(verb)")
}

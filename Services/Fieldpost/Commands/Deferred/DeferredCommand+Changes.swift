import AdminQueries
import Algorithms
import ArgumentParser
import CommandLineSupport
import Crypto
import Essentials
import Glibc
import Postgres

extension DeferredCommand {
    struct Retry: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Retry deferred and dead-lettered keys now.",
            discussion: """
                Resets the attempts and makes the keys due. For up to 20 keys it waits for the outcome and reports it: \
                handled, with the object's state, or deferred again, with the reason. The exit status is 1 if a key \
                was deferred again, meanwhile or after the retry. An unreadable message cannot be retried: discard it.
                """)
        @OptionGroup var selection: Selection
        @Flag(help: "Select all keys.") var all = false
        @Flag(help: "List the keys without retrying them.") var dryRun = false
        @OptionGroup var precondition: Precondition
        @Option(help: "Seconds to wait for the outcome of up to 20 keys; 0: none.") var wait = 10
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws {
            try selection.requireSelection(all: all)
            try validateRange("--wait", wait, in: 0...600, unit: "seconds")
        }

        func run() throws {
            var connection = try database.connect()
            var selected = try selection.select(on: &connection)
            selected.isReadable = true
            if dryRun { return try preview(selected, "retried", output, on: &connection) }
            var progress = Progress()
            var retried: [DeferredKeyStore.Row] = []
            func retry(_ rows: [DeferredKeyStore.Row], _ connection: inout Connection) throws {
                progress.add(try DeferredKeyStore.retry(rows.map { .init($0) }, by: .commandLine, on: &connection))
                if retried.count <= RetryOutcome.keyCountMax { retried += rows }
            }
            if let rows = try precondition.rows(selected, on: &connection) {
                for page in rows.chunks(ofCount: DeferredKeyStore.pageCountMax) { try retry(Array(page), &connection) }
            } else {
                try DeferredKeyStore.forEachPage(selected, on: &connection) { try retry($0, &$1) }
            }
            if progress.changed == DeferredKeyStore.Changed(), !selection.keys.isEmpty {
                selected.isReadable = false
                if try DeferredKeyStore.count(selected, on: &connection) > 0 {
                    throw CommandFailure(
                        "the message is unreadable and cannot be retried; discard it with: fieldpost deferred discard")
                }
            }
            try report(progress.changed, "retried", selection, output)
            var hasSucceeded = progress.changed.otherCount == 0
            if wait > 0, !output.json, (1...RetryOutcome.keyCountMax).contains(retried.count) {
                let outcomes = try RetryOutcome.wait(for: retried, within: .seconds(wait), on: &connection)
                for (row, outcome) in zip(retried, outcomes) { print(Table.oneLine(outcome.text(of: row.key))) }
                hasSucceeded = hasSucceeded && !outcomes.contains { $0.state == .deferredAgain }
            }
            // The reasons are printed above.
            if !hasSucceeded { throw ExitCode.failure }
        }
    }

    struct Discard: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Discard deferred and dead-lettered keys.",
            discussion: """
                Their objects are unchanged, and newer events of the keys are handled as usual. A key that was \
                deferred again meanwhile is kept, and the exit status is 1.
                """)
        @OptionGroup var selection: Selection
        @Flag(help: "Select all keys.") var all = false
        @Flag(help: "List the keys without discarding them.") var dryRun = false
        @Flag(help: "Skip the confirmation prompt.") var yes = false
        @OptionGroup var precondition: Precondition
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func validate() throws { try selection.requireSelection(all: all) }

        func run() throws {
            var connection = try database.connect()
            let selected = try selection.select(on: &connection)
            if dryRun { return try preview(selected, "discarded", output, on: &connection) }
            var progress = Progress()
            func discard(_ rows: [DeferredKeyStore.Row], _ connection: inout Connection) throws {
                progress.add(try DeferredKeyStore.discard(rows.map { .init($0) }, by: .commandLine, on: &connection))
            }
            let expected = try precondition.rows(selected, on: &connection)
            if yes, expected == nil {
                try DeferredKeyStore.forEachPage(selected, on: &connection) { try discard($0, &$1) }
                return try finish(progress.changed)
            }
            let rows =
                try expected ?? DeferredKeyStore.load(selected, countMax: DeferredKeysVersion.countMax, on: &connection)
            if !yes, !rows.isEmpty {
                let prompt = DeferredKeyStore.table(rows).text + "Discard \(rows.count)? Type yes:"
                try Terminal.confirm(prompt, refusal: "nothing was discarded")
            }
            // Only the keys that were shown: keys deferred meanwhile are kept.
            for page in rows.chunks(ofCount: DeferredKeyStore.pageCountMax) { try discard(Array(page), &connection) }
            try finish(progress.changed)
        }

        private func finish(_ changed: DeferredKeyStore.Changed) throws {
            try report(changed, "discarded", selection, output)
            if changed.otherCount > 0 { throw ExitCode.failure }
        }
    }

    /// The precondition of a change: the keys still have the version that was displayed.
    struct Precondition: ParsableArguments {
        @Option(name: .customLong("if-version"), help: "Require this version, as `show` or `--dry-run` printed it.")
        var expectedVersion: String?

        /// Returns the rows of a selection, if their version is the expected one.
        ///
        /// - Returns: `nil` without an expected version.
        /// - Throws: `CommandFailure` if the keys changed meanwhile.
        func rows(
            _ selection: DeferredKeyStore.Selection, on connection: inout Connection
        ) throws -> [DeferredKeyStore.Row]? {
            guard let expectedVersion else { return nil }
            let rows = try DeferredKeysVersion.rows(selection, on: &connection)
            guard let rows, DeferredKeysVersion.text(rows) == expectedVersion else {
                throw CommandFailure(
                    "version conflict: the keys changed meanwhile; nothing was changed, list them again")
            }
            return rows
        }
    }
}

/// The progress of a change of many keys, if standard error is a terminal.
private struct Progress {
    private(set) var changed = DeferredKeyStore.Changed()
    private var pages = 0

    mutating func add(_ more: DeferredKeyStore.Changed) {
        changed += more
        pages += 1
        if pages > 1, Terminal.showsProgress { printError("\(changed.count) keys so far\n") }
    }
}

/// Prints the oldest keys that would be changed, and their number.
private func preview(
    _ selection: DeferredKeyStore.Selection, _ verb: String, _ output: OutputOptions, on connection: inout Connection
) throws {
    let shownMax = 1_000
    let rows = try DeferredKeyStore.load(selection, countMax: shownMax, on: &connection)
    if output.json { return try printJSON(rows) }
    let versions = try DeferredKeysVersion.rows(selection, on: &connection)
    let count = try versions?.count ?? DeferredKeyStore.count(selection, on: &connection)
    print(DeferredKeyStore.table(rows).text, terminator: "")
    if count > rows.count { print("and \(count - rows.count) more") }
    if let versions, count > 0 {
        print("to change exactly these versions: --if-version \(DeferredKeysVersion.text(versions))")
    }
    print("\(count) \(count == 1 ? "key" : "keys") would be \(verb); nothing was changed")
}

private func report(
    _ changed: DeferredKeyStore.Changed, _ verb: String, _ selection: DeferredCommand.Selection, _ output: OutputOptions
) throws {
    if changed == DeferredKeyStore.Changed(), !selection.keys.isEmpty {
        throw CommandFailure("no such key is deferred")
    }
    let (count, others) = (changed.count, changed.otherCount)
    if output.json { return try printJSON(["count": count, "deferredAgain": others]) }
    let conflict =
        switch others {
        case 0: ""
        case 1: "; conflict: 1 was deferred again meanwhile and is unchanged, check it"
        default: "; conflict: \(others) were deferred again meanwhile and are unchanged, check them"
        }
    print("\(count) \(count == 1 ? "key" : "keys") \(verb)\(conflict)")
}

extension RetryOutcome {
    /// Maximum number of keys whose outcomes are waited for and reported.
    static let keyCountMax = 20
    private static let pause = Duration.milliseconds(100)

    /// Waits until each key is processed, or the time is over.
    ///
    /// - Returns: In the order of the rows.
    static func wait(
        for rows: [DeferredKeyStore.Row], within: Duration, on connection: inout Connection
    ) throws -> [RetryOutcome] {
        let deadline = ContinuousClock.now + within
        while true {
            let outcomes = try rows.map { try find($0.name, subject: $0.subject, on: &connection) }
            if ContinuousClock.now >= deadline || !outcomes.contains(where: { $0.state == .pending }) {
                return outcomes
            }
            poll(nil, 0, Int32(pause.milliseconds))
        }
    }

    /// One line of output.
    func text(of key: String) -> String {
        switch state {
        case .handled: "\(key) is handled: \(detail)"
        case .deferredAgain: "\(key) is deferred again: \(detail)"
        case .pending: "\(key) is still in flight: fieldpost deferred show '\(key)'"
        }
    }
}

/// The version of a set of keys: a text that changes if one of them changes.
enum DeferredKeysVersion {
    /// Maximum number of keys that are held in memory.
    static let countMax = 100_000

    /// Returns all rows of a selection, in the order of the primary key.
    ///
    /// - Returns: `nil` if there are more than ``countMax``.
    static func rows(
        _ selection: DeferredKeyStore.Selection, on connection: inout Connection
    ) throws -> [DeferredKeyStore.Row]? {
        let rows = try DeferredKeyStore.page(selection, after: nil, countMax: countMax + 1, on: &connection)
        return rows.count > countMax ? nil : rows
    }

    /// Returns the version of one key, or a digest of several.
    static func text(_ rows: [DeferredKeyStore.Row]) -> String {
        if rows.count == 1 { return rows[0].version }
        let digest = SHA256.hash(data: Array(rows.map(\.version).joined().utf8))
        return digest.prefix(6).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}

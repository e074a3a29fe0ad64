import AdminQueries
import BackendProtocol
import Essentials
import Foundation
import KeyedWorker
import Model
import Postgres
import Synchronization
import TestSupport
import Testing

@Suite(.ownThreads) struct DeferredCommandTests {
    private let conninfo: String
    private let dead: String
    private let waiting: String
    private let poison = "entry.events/3/17"

    init() throws {
        conninfo = try makeFoundationDatabase()
        let ids = (0..<2).map { _ in UUID().uuidString.lowercased() }
        (dead, waiting) = ("/users/ana@example.com/TimeEntry/\(ids[0])", "/users/ana@example.com/TimeEntry/\(ids[1])")
        var connection = try Connection(conninfo)
        try connection.runScript(
            """
            INSERT INTO realm.environment (id, name) VALUES (1, 'acme');
            INSERT INTO realm.realm (environment_id, id, path) VALUES (1, 5, '/users/ana@example.com');
            INSERT INTO store.object
            VALUES (1, 5, \(Kind.timeEntry.number), false, '\(ids[0])', 7, 0, 7, '{"status": "draft"}');
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, parked_at, next_at)
            VALUES
                ('entry-submitter', 1, '\(dead)', 'entry.events', 3, '\(dead)', 0,
                    'two records carry the marker', true, false, 20, now() - interval '2 hours', now()),
                ('entry-submitter', 1, '\(waiting)', 'entry.events', 4,
                    '\(waiting)', 0,
                    'busy', false, false, 3, now(), now() + interval '1 hour'),
                ('entry-submitter', 0, '\(poison)', 'entry.events', 3, '\(poison)', 0, 'no usable header', true, false,
                    0, now(), now())
            """)
    }

    @Test func explanationHasWorkersAttemptsMax() {
        #expect(DeferredKeyExplanation.attemptsMaxDefault == WorkerLimits().attemptsMax)
    }

    /// The records are found by the marker.
    @Test func severalRecordsAreExplainedWithMarker() throws {
        var connection = try Connection(conninfo)
        let reason = DeferralReason.withRecords(["801", "802", "803"])
        try connection.run("UPDATE pipeline.parked SET reason = \(reason) WHERE key = \(dead)")
        let id = try #require(UUID(ascii: String(dead.suffix(36))))
        let result = try parked("show", dead).output
        let fix = "the back end's records 801, 802, 803 whose text ends with \(EntryMarker.marker(of: id)), and delete"
        #expect(result.contains(fix), "\(result)")
    }

    @Test func invalidKeyIsReported() throws {
        // Keys do not contain names of people: an empty result for a name must not suggest that all is well.
        #expect(try parked("list", "ana@example.com").output == "no such key is deferred; a key ends with an id\n")
    }

    private func parked(_ arguments: String...) throws -> CommandResult {
        try fieldpost(["deferred"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    private func keys(_ arguments: String...) throws -> [String?] {
        let result = try fieldpost(
            ["deferred", "list", "--json"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(result.status == 0, "\(result.errors)")
        return try result.rows().map { $0["key"] as? String }
    }

    @Test func listIsNarrowedByOptions() throws {
        #expect(try keys().count == 3)
        #expect(try keys().first == dead)
        #expect(try Set(keys("--dead")) == [dead, poison])
        #expect(try Set(keys("--environment", "acme")) == [dead, waiting])
        #expect(try keys("--group", "realm-initializer").isEmpty)
        #expect(try keys(waiting) == [waiting])
        let id = String(waiting.suffix(36))
        #expect(try keys(id.uppercased()) == [waiting])
        #expect(try Set(keys("--topic", "entry.events")) == [dead, waiting, poison])
        #expect(try keys("--topic", "task.events").isEmpty)
        #expect(try keys("--reason", "carries the").isEmpty)
        #expect(try keys("--reason", "CARRY THE mark") == [dead])
        #expect(try parked("list", "--topic", "entries").errors.contains("no topic entries"))
        #expect(try parked("list", "--group", "submitter").errors.contains("no consumer group submitter"))
        #expect(try parked("list", "--environment", "none").errors.contains("environment none does not exist"))
        let table = try parked("list")
        #expect(table.output.contains("2h 00m"))
        #expect(table.output.contains("two records carry the marker"))
    }

    @Test func keysArePrintedAsJSON() throws {
        #expect(try parked("show", dead, "--json").rows()[0]["deferredAt"] is String)
        #expect(try parked("retry", "--all", "--dry-run", "--json").rows().count == 2)
        let retried = try parked("retry", dead, "--json").output.filter { !$0.isWhitespace }
        #expect(retried == #"{"count":1,"deferredAgain":0}"#)
        let discarded = try parked("discard", waiting, "--yes", "--json").output.filter { !$0.isWhitespace }
        #expect(discarded == #"{"count":1,"deferredAgain":0}"#)
        let lines = try parked("export").output.split(separator: "\n")
        #expect(lines.count == 2)
        for line in lines {
            #expect(try OutputSchema().problems(of: String(line), as: "deferred-export").isEmpty, "\(line)")
        }
    }

    @Test func showIncludesObject() throws {
        let result = try parked("show", dead)
        #expect(result.status == 0, "\(result.errors)")
        #expect(result.output.contains("entry.events/3"))
        #expect(result.output.contains(#"at position 7: {"status": "draft"}"#))
        #expect(try parked("show", "none").status == 1)
        #expect(try parked("show", String(dead.suffix(36))).output == result.output)
        let narrowed = try parked("show", "--reason", "marker", "--dead")
        #expect(narrowed.status == 0 && narrowed.output == result.output, "\(narrowed)")
        #expect(try parked("show").status == 2)
    }

    /// A retry waits for the outcome and reports it.
    @Test func retryReportsOutcome() throws {
        let pending = try parked("retry", dead, "--wait", "1")
        #expect(pending.output.contains("\(dead) is still in flight"), "\(pending)")
        var connection = try Connection(conninfo)
        // A worker processes it, and dead-letters it again.
        let again = try whileRetrying {
            try connection.run(
                """
                UPDATE pipeline.parked SET attempts = 3, is_dead = true, reason = 'still two'
                WHERE key = \(dead) AND attempts = 0
                """
            ).affectedCount == 1
        }
        #expect(again.output.contains("\(dead) is deferred again: still two") && again.status == 1, "\(again)")
        let handled = try whileRetrying {
            try connection.run(
                "DELETE FROM pipeline.parked WHERE key = \(dead) AND attempts = 0 AND NOT is_dead"
            ).affectedCount == 1
        }
        #expect(handled.output.contains("is handled: the object is at position 7, status draft"), "\(handled)")
        let gone = try parked("retry", dead)
        #expect(gone.status == 1 && gone.output.isEmpty && gone.errors.contains("no such key is deferred"), "\(gone)")
    }

    /// - Parameter act: Repeated until it returns `true`, while the command waits.
    private func whileRetrying(_ act: () throws -> Bool) throws -> CommandResult {
        var connection = try Connection(conninfo)
        // A retry resets the attempts.
        try connection.run("UPDATE pipeline.parked SET attempts = 7, is_dead = true WHERE key = \(dead)")
        let running = BackgroundCommand { [conninfo, dead] in
            try fieldpost(
                ["deferred", "retry", dead, "--wait", "60"], environment: ["FIELDPOST_DATABASE_URL": conninfo])
        }
        while try !act() {}
        return try running.wait()
    }

    @Test func reasonWithFixIsExplained() throws {
        var connection = try Connection(conninfo)
        try connection.run("UPDATE pipeline.parked SET reason = \(DeferralReason.unknownPerson) WHERE key = \(dead)")
        let result = try parked("show", dead).output
        #expect(result.contains("fieldpost environment edit acme --people FILE"), "\(result)")
        #expect(result.contains("fieldpost environment invite ana@example.com --environment acme"), "\(result)")
    }

    @Test func showExplainsReasonAndActions() throws {
        let result = try parked("show", dead).output
        for part in [
            "the TimeEntry ", "in the realm /users/ana@example.com", "two records carry the marker",
            "needs manual action", "fieldpost environment check acme", "fieldpost deferred retry '\(dead)'",
            "the object is unchanged",
        ] { #expect(result.contains(part), "\(part): \(result)") }
        #expect(try parked("show", waiting).output.contains("waiting: retried in 59m"))
        #expect(try parked("show", poison).output.contains("kcat -C -t entry.events -p 3 -o 17 -c 1"))
    }

    @Test func dryRunListsKeysWithoutChanges() throws {
        let retry = try parked("retry", "--reason", "marker", "--dry-run")
        #expect(retry.status == 0, "\(retry.errors)")
        #expect(
            retry.output.contains(dead) && retry.output.hasSuffix("1 key would be retried; nothing was changed\n"))
        // Unreadable messages are not retried, and not counted.
        #expect(try parked("retry", "--dead", "--dry-run").output.contains("1 key would be"))
        let discard = try parked("discard", "--all", "--dry-run")
        #expect(discard.output.contains("3 keys would be discarded; nothing was changed"))
        #expect(try keys().count == 3)
        #expect(try Set(keys("--dead")) == [dead, poison])
    }

    @Test func exportPrintsOneLinePerKey() throws {
        let result = try parked("export", "--group", "entry-submitter")
        #expect(result.status == 0, "\(result.errors)")
        let lines = try result.output.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
        #expect(lines.map { $0["key"] as? String } == [poison] + [dead, waiting].sorted())
        let exported = try #require(lines.first { $0["key"] as? String == dead })
        let object = try #require(exported["object"] as? [String: Any])
        #expect(object["position"] as? Int == 7)
        #expect((object["fields"] as? [String: Any])?["status"] as? String == "draft")
        #expect(exported["reason"] as? String == "two records carry the marker")
        #expect(lines.first?["object"] == nil)
        #expect(try parked("export", "--reason", "no such reason").output.isEmpty)
    }

    @Test func retryResetsAttempts() throws {
        #expect(try parked("retry").status == 2)
        #expect(try parked("retry", dead, "--wait", "0").output == "1 key retried\n")
        #expect(try parked("retry", poison).status == 1)
        var connection = try Connection(conninfo)
        let rows = try connection.run(
            "SELECT is_dead, attempts, next_at <= now() FROM pipeline.parked WHERE key = \(dead)")
        #expect(try rows[0].value(0, as: Bool.self) == false)
        #expect(try rows[0].value(1, as: Int32.self) == 0)
        #expect(try rows[0].value(2, as: Bool.self))
        #expect(try keys("--dead") == [poison])
    }

    /// Only the displayed version is discarded: a key that was deferred again meanwhile is kept, and reported.
    @Test func ifVersionRejectsChangedKeys() throws {
        var connection = try Connection(conninfo)
        func version(_ result: String) throws -> String {
            let text = try #require(result.components(separatedBy: "--if-version ").dropFirst().first)
            return String(text.prefix { !$0.isWhitespace })
        }
        let shown = try version(parked("show", dead).output)
        let previewed = try version(parked("discard", "--dead", "--dry-run").output)
        #expect(try version(parked("discard", dead, "--dry-run").output) == shown)
        // It is deferred again, with another reason.
        try connection.run("UPDATE pipeline.parked SET reason = 'three records', parked_at = now() WHERE key = \(dead)")
        for arguments in [[dead, "--if-version", shown], ["--dead", "--if-version", previewed]] {
            for act in [["discard", "--yes"], ["retry"]] {
                let result = try fieldpost(
                    ["deferred", act[0]] + arguments + act.dropFirst(),
                    environment: ["FIELDPOST_DATABASE_URL": conninfo])
                #expect(result.status == 1 && result.errors.contains("version conflict"), "\(result)")
            }
        }
        #expect(try Set(keys("--dead")) == [dead, poison])
        // A worker that takes a key does not change its version.
        let again = try version(parked("discard", "--dead", "--dry-run").output)
        try connection.run("UPDATE pipeline.parked SET next_at = now() + interval '1 minute' WHERE key = \(dead)")
        #expect(try parked("discard", "--dead", "--yes", "--if-version", again).output == "2 keys discarded\n")
        #expect(try keys() == [waiting])
    }

    @Test func discardRequiresConfirmation() throws {
        let result = try parked("discard", dead)
        #expect(result.status == 2)
        #expect(result.errors.contains("--yes"))
        #expect(try keys().count == 3)
        #expect(try parked("discard", dead, poison, "--yes").output == "2 keys discarded\n")
        #expect(try keys() == [waiting])
        #expect(try parked("discard", dead, "--yes").status == 1)
        // Each key has an audit record in its environment; an unreadable message has no environment.
        let list = ["audit", "list", "--action", "parked", "--json"]
        let all = try fieldpost(list, environment: ["FIELDPOST_DATABASE_URL": conninfo]).rows()
        #expect(Set(all.map { $0["subject"] as? String }) == [dead, poison])
        let ofAcme = try fieldpost(
            list + ["--environment", "acme"], environment: ["FIELDPOST_DATABASE_URL": conninfo]
        ).rows()
        #expect(ofAcme.map { $0["subject"] as? String } == [dead])
        // The reason is recorded too, because the row is deleted.
        #expect(
            ofAcme.map { $0["detail"] as? [String: String] }
                == [["group": "entry-submitter", "reason": "two records carry the marker"]])
    }

    /// Any number of keys is changed by pages, including a full last page.
    @Test func allKeysAreRetriedAndDiscardedByPages() throws {
        var connection = try Connection(conninfo)
        try connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            SELECT 'entry-submitter', 1, 'k' || i, 'entry.events', 0, 'k' || i, 0, 'busy', true, false, 20, now()
            FROM generate_series(1, 2998) AS i
            """)
        #expect(try parked("retry", "--all").output == "3000 keys retried\n")
        #expect(try keys("--dead") == [poison])
        #expect(try parked("discard", "--all", "--yes").output == "3001 keys discarded\n")
        #expect(try keys().isEmpty)
        let records = try connection.run(
            "SELECT count(*) FILTER (WHERE environment_id = 1), count(*) FROM access.audit")
        #expect(try records[0].value(0, as: Int64.self) == 6_000)
        #expect(try records[0].value(1, as: Int64.self) == 6_001)
    }
}

/// A command on its own thread.
private final class BackgroundCommand: Sendable {
    private let result = Mutex<Result<CommandResult, any Error>?>(nil)
    private let end = DispatchSemaphore(value: 0)

    init(_ body: @escaping @Sendable () throws -> CommandResult) {
        Thread.detachNewThread { [self] in
            let outcome = Result { try body() }
            result.withLock { $0 = outcome }
            end.signal()
        }
    }

    func wait() throws -> CommandResult {
        end.wait()
        return try result.withLock { try $0?.get() } ?? { throw CancellationError() }()
    }
}

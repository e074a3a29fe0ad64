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

@Suite(.ownThreads) struct ParkedTests {
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

    @Test func theAttemptsThatAreToldAreTheWorkers() {
        #expect(ParkedExplanation.attemptsUsual == WorkerLimits().attemptsMax)
    }

    /// The marker is what the records are found by.
    @Test func severalRecordsAreToldWithTheirMarker() throws {
        var connection = try Connection(conninfo)
        let reason = "3 \(ParkedReason.severalRecords)"
        try connection.run("UPDATE pipeline.parked SET reason = \(reason) WHERE key = \(dead)")
        let id = try #require(UUID(ascii: String(dead.suffix(36))))
        let said = try parked("show", dead).output
        #expect(said.contains("whose text ends with \(EntryMarker.marker(of: id)), and delete all but one"), "\(said)")
    }

    @Test func whatIsNoKeyIsNotCalledWell() throws {
        // Whoever complains has a name, and keys have none: that nothing was found does not say that all is well.
        #expect(try parked("list", "ana@example.com").output == "no such key is parked; a key ends with an id\n")
    }

    private func parked(_ arguments: String...) throws -> Answer {
        try fieldpost(["parked"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    private func keys(_ arguments: String...) throws -> [String?] {
        let answer = try fieldpost(
            ["parked", "list", "--json"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
        #expect(answer.status == 0, "\(answer.errors)")
        return try answer.rows().map { $0["key"] as? String }
    }

    @Test func aListIsNarrowed() throws {
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
        #expect(try parked("list", "--topic", "entries").errors.contains("there is no topic entries"))
        #expect(try parked("list", "--group", "submitter").errors.contains("there is no consumer group submitter"))
        #expect(try parked("list", "--environment", "none").errors.contains("there is no environment none"))
        let table = try parked("list")
        #expect(table.output.contains("2h 00m"))
        #expect(table.output.contains("two records carry the marker"))
    }

    @Test func showTellsAllIncludingTheObject() throws {
        let answer = try parked("show", dead)
        #expect(answer.status == 0, "\(answer.errors)")
        #expect(answer.output.contains("entry.events/3"))
        #expect(answer.output.contains(#"at position 7: {"status": "draft"}"#))
        #expect(try parked("show", "none").status == 1)
        #expect(try parked("show", String(dead.suffix(36))).output == answer.output)
        let narrowed = try parked("show", "--reason", "marker", "--dead")
        #expect(narrowed.status == 0 && narrowed.output == answer.output, "\(narrowed)")
        #expect(try parked("show").status == 2)
    }

    /// Whoever tries a key again is told what came of it.
    @Test func aRetryTellsItsOutcome() throws {
        let onItsWay = try parked("retry", dead, "--wait", "1")
        #expect(onItsWay.output.contains("\(dead) is on its way still"), "\(onItsWay)")
        var connection = try Connection(conninfo)
        // A worker took it, and it died again.
        let again = try whileRetrying {
            try connection.run(
                """
                UPDATE pipeline.parked SET attempts = 3, is_dead = true, reason = 'still two'
                WHERE key = \(dead) AND attempts = 0
                """
            ).affectedCount == 1
        }
        #expect(again.output.contains("\(dead) is parked again: still two") && again.status == 1, "\(again)")
        let handled = try whileRetrying {
            try connection.run(
                "DELETE FROM pipeline.parked WHERE key = \(dead) AND attempts = 0 AND NOT is_dead"
            ).affectedCount == 1
        }
        #expect(handled.output.contains("is handled: the object is at position 7, status draft"), "\(handled)")
        let gone = try parked("retry", dead)
        #expect(gone.status == 1 && gone.output.isEmpty && gone.errors.contains("no such key is parked"), "\(gone)")
    }

    /// - Parameter act: Done again and again until it is done, while the command waits.
    private func whileRetrying(_ act: () throws -> Bool) throws -> Answer {
        var connection = try Connection(conninfo)
        // A retry is seen by the attempts that it forgets.
        try connection.run("UPDATE pipeline.parked SET attempts = 7, is_dead = true WHERE key = \(dead)")
        let running = RunningAnswer { [conninfo, dead] in
            try fieldpost(["parked", "retry", dead, "--wait", "60"], environment: ["FIELDPOST_DATABASE_URL": conninfo])
        }
        while try !act() {}
        return try running.wait()
    }

    @Test func whatMendsAReasonThatIsKnownIsSaid() throws {
        var connection = try Connection(conninfo)
        try connection.run("UPDATE pipeline.parked SET reason = \(ParkedReason.unknownPerson) WHERE key = \(dead)")
        let said = try parked("show", dead).output
        #expect(said.contains("fieldpost environment edit acme --people FILE"), "\(said)")
        #expect(said.contains("fieldpost environment invite ana@example.com --environment acme"), "\(said)")
    }

    @Test func showSaysWhyAndWhatToDo() throws {
        let said = try parked("show", dead).output
        for part in [
            "the TimeEntry ", "in the realm /users/ana@example.com", "two records carry the marker",
            "waits for a person", "fieldpost environment check acme", "fieldpost parked retry '\(dead)'",
            "the object stays as it is",
        ] { #expect(said.contains(part), "\(part): \(said)") }
        #expect(try parked("show", waiting).output.contains("waiting: tried again in 59m"))
        #expect(try parked("show", poison).output.contains("kcat -C -t entry.events -p 3 -o 17 -c 1"))
    }

    @Test func whatWouldBeDoneIsSaidWithoutDoingIt() throws {
        let retry = try parked("retry", "--reason", "marker", "--dry-run")
        #expect(retry.status == 0, "\(retry.errors)")
        #expect(
            retry.output.contains(dead) && retry.output.hasSuffix("1 key would be tried again; nothing was changed\n"))
        // What could not be read is not tried again, and so not counted.
        #expect(try parked("retry", "--dead", "--dry-run").output.contains("1 key would be"))
        let discard = try parked("discard", "--all", "--dry-run")
        #expect(discard.output.contains("3 keys would be discarded; nothing was changed"))
        #expect(try keys().count == 3)
        #expect(try Set(keys("--dead")) == [dead, poison])
    }

    @Test func theWholeOfEachKeyIsExportedAsALine() throws {
        let answer = try parked("export", "--group", "entry-submitter")
        #expect(answer.status == 0, "\(answer.errors)")
        let lines = try answer.output.split(separator: "\n").map { line in
            try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        }
        #expect(lines.map { $0["key"] as? String } == [poison] + [dead, waiting].sorted())
        let exported = try #require(lines.first { $0["key"] as? String == dead })
        let object = try #require(exported["object"] as? [String: Any])
        #expect(object["position"] as? Int == 7)
        #expect((object["fields"] as? [String: Any])?["status"] as? String == "draft")
        #expect(exported["reason"] as? String == "two records carry the marker")
        #expect(lines.first?["object"] == nil)
        #expect(try parked("export", "--reason", "nothing says so").output.isEmpty)
    }

    @Test func aRetryStartsWithAllAttempts() throws {
        #expect(try parked("retry").status == 2)
        #expect(try parked("retry", dead, "--wait", "0").output == "1 key is tried again\n")
        #expect(try parked("retry", poison).status == 1)
        var connection = try Connection(conninfo)
        let rows = try connection.run(
            "SELECT is_dead, attempts, next_at <= now() FROM pipeline.parked WHERE key = \(dead)")
        #expect(try rows[0].value(0, as: Bool.self) == false)
        #expect(try rows[0].value(1, as: Int32.self) == 0)
        #expect(try rows[0].value(2, as: Bool.self))
        #expect(try keys("--dead") == [poison])
    }

    /// What a person saw is what is discarded: a key that was parked again meanwhile stays, and the answer says so.
    @Test func onlyWhatWasSeenIsChanged() throws {
        var connection = try Connection(conninfo)
        func seen(_ said: String) throws -> String {
            let found = try #require(said.components(separatedBy: "--seen ").dropFirst().first)
            return String(found.prefix { !$0.isWhitespace })
        }
        let shown = try seen(parked("show", dead).output)
        let rehearsed = try seen(parked("discard", "--dead", "--dry-run").output)
        #expect(try seen(parked("discard", dead, "--dry-run").output) == shown)
        // It is parked anew, for another reason.
        try connection.run("UPDATE pipeline.parked SET reason = 'three records', parked_at = now() WHERE key = \(dead)")
        for arguments in [[dead, "--seen", shown], ["--dead", "--seen", rehearsed]] {
            for act in [["discard", "--yes"], ["retry"]] {
                let answer = try fieldpost(
                    ["parked", act[0]] + arguments + act.dropFirst(),
                    environment: ["FIELDPOST_DATABASE_URL": conninfo])
                #expect(answer.status == 1 && answer.errors.contains("not what was shown"), "\(answer)")
            }
        }
        #expect(try Set(keys("--dead")) == [dead, poison])
        // That a worker takes a key changes nothing of what is seen.
        let again = try seen(parked("discard", "--dead", "--dry-run").output)
        try connection.run("UPDATE pipeline.parked SET next_at = now() + interval '1 minute' WHERE key = \(dead)")
        #expect(try parked("discard", "--dead", "--yes", "--seen", again).output == "2 keys are discarded\n")
        #expect(try keys() == [waiting])
    }

    @Test func discardingAsksFirst() throws {
        let asked = try parked("discard", dead)
        #expect(asked.status == 2)
        #expect(asked.errors.contains("--yes"))
        #expect(try keys().count == 3)
        #expect(try parked("discard", dead, poison, "--yes").output == "2 keys are discarded\n")
        #expect(try keys() == [waiting])
        #expect(try parked("discard", dead, "--yes").status == 1)
        // Each key has a record, in its own environment: what could not be read has none.
        let list = ["audit", "list", "--action", "parked", "--json"]
        let all = try fieldpost(list, environment: ["FIELDPOST_DATABASE_URL": conninfo]).rows()
        #expect(Set(all.map { $0["subject"] as? String }) == [dead, poison])
        let ofAcme = try fieldpost(
            list + ["--environment", "acme"], environment: ["FIELDPOST_DATABASE_URL": conninfo]
        ).rows()
        #expect(ofAcme.map { $0["subject"] as? String } == [dead])
        // Also why it was parked, which nothing else keeps.
        #expect(
            ofAcme.map { $0["detail"] as? String }
                == [#"{"group": "entry-submitter", "reason": "two records carry the marker"}"#])
    }

    /// As many as there are, by pages, also when the last page is full.
    @Test func allAreRetriedAndDiscarded() throws {
        var connection = try Connection(conninfo)
        try connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            SELECT 'entry-submitter', 1, 'k' || i, 'entry.events', 0, 'k' || i, 0, 'busy', true, false, 20, now()
            FROM generate_series(1, 2998) AS i
            """)
        #expect(try parked("retry", "--all").output == "3000 keys are tried again\n")
        #expect(try keys("--dead") == [poison])
        #expect(try parked("discard", "--all", "--yes").output == "3001 keys are discarded\n")
        #expect(try keys().isEmpty)
        let records = try connection.run(
            "SELECT count(*) FILTER (WHERE environment_id = 1), count(*) FROM access.audit")
        #expect(try records[0].value(0, as: Int64.self) == 6_000)
        #expect(try records[0].value(1, as: Int64.self) == 6_001)
    }
}

/// What runs on a thread of its own, and answers.
private final class RunningAnswer: Sendable {
    private let result = Mutex<Result<Answer, any Error>?>(nil)
    private let end = DispatchSemaphore(value: 0)

    init(_ body: @escaping @Sendable () throws -> Answer) {
        Thread.detachNewThread { [self] in
            let answer = Result { try body() }
            result.withLock { $0 = answer }
            end.signal()
        }
    }

    func wait() throws -> Answer {
        end.wait()
        return try result.withLock { try $0?.get() } ?? { throw CancellationError() }()
    }
}

import Backends
import Catalogues
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import BackendPoller

/// Concurrent changes and polls, with a PostgreSQL database and an e-conomic sandbox over HTTP.
@Suite(.ownThreads) struct PollerConcurrencyTests {
    /// The worker that receives the report has not read any person yet; others have read the first people already.
    @Test func choicesChangedDuringFullRunMakeNextRunFull() async throws {
        try await PollerWorld.run { world in
            try await world.completeRun(isFull: true)
            try world.acme.connection.runScript(
                """
                CREATE FUNCTION reset_full_run() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN UPDATE poll.run SET full_started_at = NULL; RETURN NEW; END';
                CREATE TRIGGER reset_full_run AFTER INSERT OR UPDATE ON store.object FOR EACH ROW
                    WHEN (NEW.fields::json->>'person' = 'eva@example.com') EXECUTE FUNCTION reset_full_run();
                """)
            try world.beginRun(isFull: true)
            try world.acme.connection.runScript("DROP TRIGGER reset_full_run ON store.object")
            for count in [4, 4, 1] {
                #expect(try world.openPolls().count == count)
                try await world.finishPolls()
                try world.beginRun()
            }
        }
    }

    /// A page's cursor that the back end rejects restarts the pass, and later passes succeed.
    @Test func passWithRejectedPageIsRestartedByNextRun() async throws {
        try await PollerWorld.run { world in
            try await world.completeRun(isFull: true)
            for _ in 0..<5 { _ = try await world.create(of: 0) }
            try await world.post("/sandbox/switches", #"{"pageItemsMax": 2}"#)
            try world.beginRun(isFull: false)
            let poll = RealmContents.pollID(of: Poll.changesPerson)
            for _ in 0..<2 { try await world.step(poll) }
            #expect(try world.seen(of: 0).count == 2)
            try world.crash()
            let cursor = try #require(try world.watermark()).split(separator: " ").dropLast().joined(separator: " ")
            try world.acme.connection.run("UPDATE poll.watermark SET cursor = \(cursor + " gone")")
            for _ in 0..<2 { try await world.step(poll) }
            try #require(try world.openPolls().isEmpty)
            try await world.completeRun(isFull: false)
            #expect(try world.seen(of: 0).count == 5)
            #expect(world.written.values.allSatisfy { $0.count == 1 })
        }
    }

    /// A character that PostgreSQL does not store is replaced, and no poll fails because of it.
    @Test(arguments: [true, false]) func textsWithNullAreStored(isFull: Bool) async throws {
        try await PollerWorld.run { world in
            try await world.completeRun(isFull: true)
            let number = try await world.create(of: 0)
            try await world.post("/sandbox/entries", #"{"number": \#(number), "text": "N\u0000o"}"#)
            try await world.post(
                "/sandbox/organisation",
                #"{"employees": [], "projects": [{"number": 12, "name": "A\u0000B"}], "activities": []}"#)
            try world.restart()
            try await world.completeRun(isFull: isFull)
            #expect(try world.seen(of: 0).map(\.text) == ["N\u{FFFD}o"])
            try await world.completeRun(isFull: true)
            try world.beginRun(isFull: false)
            #expect(try world.names(of: .reportingTreeNode).contains("A\u{FFFD}B"))
        }
    }

    /// A worker has both results in one batch: a changed record that the comparison does not have any more. If the page
    /// cannot be committed, the comparison must not depend on it.
    @Test func comparisonDoesNotDependOnUnwrittenPage() async throws {
        try await PollerWorld.run { world in
            let number = try await world.create(of: 0)
            try await world.completeRun(isFull: true)
            try await world.post("/sandbox/entries", #"{"number": \#(number), "isApproved": true}"#)
            try world.beginRun(isFull: true)
            let (changes, ana) = (
                RealmContents.pollID(of: Poll.changesPerson), RealmContents.pollID(of: PollerWorld.people[0].0)
            )
            try await world.step(changes)
            try await world.post("/sandbox/entries", #"{"number": \#(number), "isDeleted": true}"#)
            try await world.step(ana)
            let batch = try world.prepare([changes, ana])
            try world.overtake(changes)
            #expect(try batch.commit(on: &world.acme.connection).conflicts == [0])
            try await world.finishPolls()
            #expect(try world.seen(of: 0).isEmpty)
        }
    }
}

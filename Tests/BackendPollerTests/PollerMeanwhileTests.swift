import Backends
import FoundationEssentials
import Model
import Postgres
import Realms
import TestSupport
import Testing

@testable import BackendPoller

/// What happens while something else is under way, with a real database and a real e-conomic sandbox over HTTP.
@Suite struct PollerMeanwhileTests {
    /// The worker that is told of them has read nobody yet, others have read the first people already.
    @Test func choicesThatChangeWhileAFullRunIsWrittenAreComparedByTheNextOne() async throws {
        try await PollerWorld.run { world in
            try await world.completeRun(isFull: true)
            try world.acme.connection.runScript(
                """
                CREATE FUNCTION told() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN UPDATE poll.run SET full_started_at = NULL; RETURN NEW; END';
                CREATE TRIGGER told AFTER INSERT OR UPDATE ON realm.object FOR EACH ROW
                    WHEN (NEW.fields->>'person' = 'eva@example.com') EXECUTE FUNCTION told();
                """)
            try world.beginRun(isFull: true)
            try world.acme.connection.runScript("DROP TRIGGER told ON realm.object")
            for count in [4, 4, 1] {
                #expect(try world.openPolls().count == count)
                try await world.finishPolls()
                try world.beginRun()
            }
        }
    }
}

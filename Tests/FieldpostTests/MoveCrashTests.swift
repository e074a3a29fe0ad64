import Foundation
import Postgres
import Synchronization
import TenantMigration
import TestSupport
import Testing

/// Imports that are killed, cut, run twice, or run again.
@Suite(.ownThreads) struct MoveCrashTests {
    private let place: MovedEnvironment
    private static let objectCount: Int64 = 2_500

    init() throws { place = try MovedEnvironment(objectCount: Self.objectCount) }

    /// What `fieldpost environment moves` says of it at the new place.
    private func told() throws -> [String: Any] {
        let answer = try place.run(at: place.new, "moves", "--json")
        try #require(answer.status == 0, "\(answer.errors)")
        return try #require(try answer.rows().first)
    }

    @Test func anImportThatWasKilledGoesOnWhereItWas() throws {
        try killFieldpost(
            reading: MovedEnvironment.data(place.firstPage(of: place.stream())),
            { ["environment", "import", $0, "--key-from", "KEY"] }, environment: place.variables(at: place.new)
        ) {
            try waitUntil("a page is there") {
                try place.count("SELECT count(*) FROM realm.move WHERE resume IS NOT NULL", at: place.new) == 1
            }
            // Nobody else takes it in, begins it or removes it meanwhile.
            let stream = try place.stream()
            let answers = Mutex<[Answer?]>([])
            DispatchQueue.concurrentPerform(iterations: 3) { index in
                let answer =
                    switch index {
                    case 0: try? place.bring(stream)
                    case 1: try? place.run(at: place.new, "begin", "acme", "x", "--key-from", "KEY")
                    default: try? place.run(at: place.new, "discard", "acme")
                    }
                answers.withLock { $0.append(answer) }
            }
            for answer in answers.withLock({ $0 }) {
                let answer = try #require(answer)
                #expect(answer.status == 1 && answer.errors.contains("of acme is in progress"), "\(answer)")
            }
        }
        #expect(try told()["state"] as? String == "arriving")
        let resume = try #require(try told()["resume"] as? String)
        let arrived = try place.count("SELECT count(*) FROM store.object", at: place.new)
        #expect(arrived > 0 && arrived < Self.objectCount)
        let rest = try place.stream(resume: resume)
        // What had come does not come again.
        #expect(rest.count < Int(Self.objectCount))
        try place.finish(place.line(place.bring(rest)))
    }

    @Test func aReceiptThatWasLostIsSaidAgain() throws {
        _ = try place.transfer()
        #expect(try told()["state"] as? String == "whole")
        let receipt = try place.line(place.bring(place.stream()))
        try place.finish(receipt)
        let begun = try place.bring(place.stream())
        #expect(begun.status == 1 && begun.errors.contains("acme has begun here"), "\(begun)")
    }

    /// Where an earlier copy stopped is no place to go on from once another began.
    @Test func aCopyThatBeganAnewDoesNotGoOnFromAnEarlierOne() throws {
        let stream = try place.stream()
        _ = try place.bring(place.firstPage(of: stream))
        let resume = try #require(try told()["resume"] as? String)
        _ = try place.bring(stream.prefix(1))
        #expect(try told()["resume"] == nil)
        let answer = try place.bring(place.stream(resume: resume))
        #expect(answer.status == 1 && answer.errors.contains("export without --resume"), "\(answer)")
        try place.finish(place.transfer())
    }

    /// What is left when it is stopped is not whole, and no stream goes on from what was there before.
    @Test func aDiscardThatWasStoppedLeavesNothingThatWorks() throws {
        let stream = try place.stream()
        _ = try place.bring(place.firstPage(of: stream))
        let resume = try #require(try told()["resume"] as? String)
        let receipt = try place.line(place.bring(place.stream(resume: resume)))
        let permission = try place.line(place.run(at: place.old, "leave", "acme", receipt, "--key-from", "KEY"))
        var connection = try Connection(place.new)
        try connection.run([
            "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stopped'; END $$",
            "CREATE TRIGGER stop BEFORE DELETE ON realm.realm EXECUTE FUNCTION stop()",
        ])
        let stopped = try place.run(at: place.new, "discard", "acme")
        #expect(stopped.status == 1 && stopped.errors.contains("stopped"), "\(stopped)")
        #expect(try place.run(at: place.new, "begin", "acme", permission, "--key-from", "KEY").status == 1)
        #expect(try told()["state"] as? String == "arriving" && told()["resume"] == nil)
        #expect(try place.bring(place.stream(resume: resume)).errors.contains("export without --resume"))
        try connection.run("DROP TRIGGER stop ON realm.realm")
        try place.finish(place.transfer())
    }

    /// Whoever tries again with a command that says nothing does not begin anew.
    @Test func aStreamWithoutABeginningIsToldSo() throws {
        let answer = try place.bring([])
        #expect(answer.status == 1 && answer.errors.contains("nothing arrived"), "\(answer)")
    }

    /// Cut at each line of what comes while it is held, it goes on with that part alone.
    @Test func aStreamThatIsCutWhileItIsHeldGoesOn() throws {
        var stream = try place.stream()
        for distance in 0... {
            let held = try #require(stream.firstIndex { $0.hasPrefix(#"{"held""#) })
            guard held + distance < stream.count - 1 else { break }
            let cut = try place.bring(stream[...(held + distance)])
            let resume = try MovedEnvironment.resume(cut)
            #expect(try told()["resume"] as? String == resume)
            stream = try place.stream(resume: resume)
            #expect(stream.count < Int(Self.objectCount))
        }
        try place.finish(place.line(place.bring(stream)))
    }
}

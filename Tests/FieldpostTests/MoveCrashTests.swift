import Foundation
import Moving
import Postgres
import TestSupport
import Testing

/// Imports that are killed, cut, run twice, or run again.
@Suite(.ownThreads) struct MoveCrashTests {
    private let place: MovedEnvironment
    private static let objectCount: Int64 = 2_500

    init() throws { place = try MovedEnvironment(objectCount: Self.objectCount) }

    /// The lines of a stream before its second page of objects and a half.
    private func firstPage(of stream: [Substring]) throws -> ArraySlice<Substring> {
        let parts = stream.indices.filter { stream[$0].hasPrefix(#"{"part""#) }
        try #require(parts.count > 2)
        return stream[..<((parts[1] + parts[2]) / 2)]
    }

    /// What `fieldpost environment moves` says of it at the new place.
    private func told() throws -> [String: Any] {
        let answer = try place.run(at: place.new, "moves", "--json")
        try #require(answer.status == 0, "\(answer.errors)")
        return try #require(try answer.rows().first)
    }

    /// Begins it at the new place, and compares the objects.
    private func finish(_ receipt: String) throws {
        let permission = try place.line(place.run(at: place.old, "leave", "acme", receipt, "--key-from", "KEY"))
        _ = try place.line(place.run(at: place.new, "begin", "acme", permission, "--key-from", "KEY"))
        let objects: (String) throws -> [String] = { at in
            var connection = try Connection(at)
            return try connection.run(
                "SELECT (to_jsonb(o) - 'environment_id')::text FROM store.object o ORDER BY 1"
            ).decode(String.self)
        }
        let before = try objects(place.old)
        #expect(before.count == Int(Self.objectCount))
        #expect(try objects(place.new) == before)
        #expect(try place.count("SELECT count(*) FROM realm.realm", at: place.new) == 1)
    }

    @Test func anImportThatWasKilledGoesOnWhereItWas() throws {
        try killFieldpost(
            reading: MovedEnvironment.data(firstPage(of: place.stream())),
            { ["environment", "import", $0, "--key-from", "KEY"] }, environment: place.variables(at: place.new)
        ) {
            try waitUntil("a page is there") {
                try place.count("SELECT count(*) FROM realm.move WHERE resume IS NOT NULL", at: place.new) == 1
            }
            // Nobody else takes it in, or removes it, meanwhile.
            for answer in [try place.bring(place.stream()), try place.run(at: place.new, "discard", "acme")] {
                #expect(answer.status == 1)
                #expect(answer.errors.contains("another import of acme is under way"), "\(answer)")
            }
        }
        #expect(try told()["state"] as? String == "arriving")
        let resume = try #require(try told()["resume"] as? String)
        let arrived = try place.count("SELECT count(*) FROM store.object", at: place.new)
        #expect(arrived > 0 && arrived < Self.objectCount)
        let rest = try place.stream(resume: resume)
        // What had come does not come again.
        #expect(rest.count < Int(Self.objectCount))
        try finish(place.line(place.bring(rest)))
    }

    @Test func aReceiptThatWasLostIsSaidAgain() throws {
        _ = try place.transfer()
        #expect(try told()["state"] as? String == "whole")
        let receipt = try place.line(place.bring(place.stream()))
        try finish(receipt)
        let begun = try place.bring(place.stream())
        #expect(begun.status == 1 && begun.errors.contains("acme has begun here"), "\(begun)")
    }

    /// Where an earlier copy stopped is no place to go on from once another began.
    @Test func aCopyThatBeganAnewDoesNotGoOnFromAnEarlierOne() throws {
        let stream = try place.stream()
        _ = try place.bring(firstPage(of: stream))
        let resume = try #require(try told()["resume"] as? String)
        _ = try place.bring(stream.prefix(1))
        #expect(try told()["resume"] == nil)
        let answer = try place.bring(place.stream(resume: resume))
        #expect(answer.status == 1 && answer.errors.contains("export without --resume"), "\(answer)")
        try finish(place.transfer())
    }

    /// Cut at each line of what comes while it is held, it goes on with that part alone.
    @Test func aStreamThatIsCutWhileItIsHeldGoesOn() throws {
        var stream = try place.stream()
        for distance in 0... {
            let held = try #require(stream.firstIndex { $0.hasPrefix(#"{"held""#) })
            guard held + distance < stream.count - 1 else { break }
            let cut = try place.bring(stream[...(held + distance)])
            let resume = try #require(cut.errors.firstMatch(of: try Regex("--resume (\\S+)"))?.output[1].substring)
            #expect(try told()["resume"] as? String == String(resume))
            stream = try place.stream(resume: String(resume))
            #expect(stream.count < Int(Self.objectCount))
        }
        try finish(place.line(place.bring(stream)))
    }
}

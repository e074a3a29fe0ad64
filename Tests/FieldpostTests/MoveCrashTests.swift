import Foundation
import Postgres
import Synchronization
import TenantMigration
import TestSupport
import Testing

/// Imports that are killed, cut, run concurrently, or repeated.
@Suite(.ownThreads) struct MoveCrashTests {
    private let fixture: EnvironmentMoveFixture
    private static let objectCount: Int64 = 2_500

    init() throws { fixture = try EnvironmentMoveFixture(objectCount: Self.objectCount) }

    /// The row of `fieldpost environment moves` at the destination.
    private func listedMove() throws -> [String: Any] {
        let result = try fixture.run(at: fixture.destination, "moves", "--json")
        try #require(result.status == 0, "\(result.errors)")
        return try #require(try result.rows().first)
    }

    @Test func killedImportResumesWhereItStopped() throws {
        try killFieldpost(
            reading: EnvironmentMoveFixture.data(fixture.firstPage(of: fixture.stream())),
            { ["environment", "import", $0, "--key-from", "KEY"] },
            environment: fixture.variables(at: fixture.destination)
        ) {
            try waitUntil("a page is imported") {
                try fixture.count("SELECT count(*) FROM realm.move WHERE resume IS NOT NULL", at: fixture.destination)
                    == 1
            }
            // No other session can import, activate or delete it meanwhile.
            let stream = try fixture.stream()
            let results = Mutex<[CommandResult?]>([])
            DispatchQueue.concurrentPerform(iterations: 3) { index in
                let result =
                    switch index {
                    case 0: try? fixture.bring(stream)
                    case 1: try? fixture.run(at: fixture.destination, "activate", "acme", "x", "--key-from", "KEY")
                    default: try? fixture.run(at: fixture.destination, "discard", "acme")
                    }
                results.withLock { $0.append(result) }
            }
            for result in results.withLock({ $0 }) {
                let result = try #require(result)
                #expect(result.status == 1 && result.errors.contains("of acme is in progress"), "\(result)")
            }
        }
        #expect(try listedMove()["state"] as? String == "arriving")
        let resume = try #require(try listedMove()["resume"] as? String)
        let arrived = try fixture.count("SELECT count(*) FROM store.object", at: fixture.destination)
        #expect(arrived > 0 && arrived < Self.objectCount)
        let rest = try fixture.stream(resume: resume)
        // Imported rows are not sent again.
        #expect(rest.count < Int(Self.objectCount))
        try fixture.finish(fixture.line(fixture.bring(rest)))
    }

    @Test func lostReceiptIsPrintedAgain() throws {
        _ = try fixture.transfer()
        #expect(try listedMove()["state"] as? String == "whole")
        let receipt = try fixture.line(fixture.bring(fixture.stream()))
        try fixture.finish(receipt)
        let repeated = try fixture.bring(fixture.stream())
        #expect(repeated.status == 1 && repeated.errors.contains("acme is active here"), "\(repeated)")
    }

    /// The resume point of an earlier copy is invalid once another copy started.
    @Test func restartedCopyDoesNotResumeEarlierOne() throws {
        let stream = try fixture.stream()
        _ = try fixture.bring(fixture.firstPage(of: stream))
        let resume = try #require(try listedMove()["resume"] as? String)
        _ = try fixture.bring(stream.prefix(1))
        #expect(try listedMove()["resume"] == nil)
        let result = try fixture.bring(fixture.stream(resume: resume))
        #expect(result.status == 1 && result.errors.contains("export without --resume"), "\(result)")
        try fixture.finish(fixture.transfer())
    }

    /// The rest after an interruption is incomplete, and no stream resumes it.
    @Test func interruptedDiscardLeavesInactiveCopy() throws {
        let stream = try fixture.stream()
        _ = try fixture.bring(fixture.firstPage(of: stream))
        let resume = try #require(try listedMove()["resume"] as? String)
        let receipt = try fixture.line(fixture.bring(fixture.stream(resume: resume)))
        let token = try fixture.line(fixture.run(at: fixture.source, "cut-over", "acme", receipt, "--key-from", "KEY"))
        var connection = try Connection(fixture.destination)
        try connection.run([
            "CREATE FUNCTION stop() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'stopped'; END $$",
            "CREATE TRIGGER stop BEFORE DELETE ON realm.realm EXECUTE FUNCTION stop()",
        ])
        let stopped = try fixture.run(at: fixture.destination, "discard", "acme")
        #expect(stopped.status == 1 && stopped.errors.contains("stopped"), "\(stopped)")
        #expect(try fixture.run(at: fixture.destination, "activate", "acme", token, "--key-from", "KEY").status == 1)
        #expect(try listedMove()["state"] as? String == "arriving" && listedMove()["resume"] == nil)
        #expect(try fixture.bring(fixture.stream(resume: resume)).errors.contains("export without --resume"))
        try connection.run("DROP TRIGGER stop ON realm.realm")
        try fixture.finish(fixture.transfer())
    }

    /// An import that gets an empty stream changes nothing.
    @Test func emptyStreamIsReported() throws {
        let result = try fixture.bring([])
        #expect(result.status == 1 && result.errors.contains("nothing arrived"), "\(result)")
    }

    /// The stream is cut at each line during the write-block: the next export resumes with that part only.
    @Test func streamCutDuringWriteBlockResumes() throws {
        var stream = try fixture.stream()
        for distance in 0... {
            let marker = try #require(stream.firstIndex { $0.hasPrefix(#"{"held""#) })
            guard marker + distance < stream.count - 1 else { break }
            let cut = try fixture.bring(stream[...(marker + distance)])
            let resume = try EnvironmentMoveFixture.resume(cut)
            #expect(try listedMove()["resume"] as? String == resume)
            stream = try fixture.stream(resume: resume)
            #expect(stream.count < Int(Self.objectCount))
        }
        try fixture.finish(fixture.line(fixture.bring(stream)))
    }
}

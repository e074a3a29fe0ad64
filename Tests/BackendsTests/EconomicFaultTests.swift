import BackendProtocol
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@testable import Backends

@Suite(.ownThreads) struct EconomicFaultTests {
    typealias Fixture = EconomicFixture

    @Test func touchedEntryIsUpdatedAfterReread() async throws {
        try await Fixture.run { economic in
            let id = try await economic.backend.create(Fixture.submission())
            try await economic.switches(#"{"touchesBeforePut": 1}"#)
            #expect(try await economic.backend.update(id, to: Fixture.submission(seconds: 7200)) == id)
            #expect(try await economic.recorded().map(\.numberOfHours) == [2])
            #expect(try await economic.stats()["updates"] == 2)
        }
    }

    @Test func changeOfAnotherClientIsNotOverwritten() async throws {
        try await Fixture.run { economic in
            let id = try await economic.backend.create(Fixture.submission())
            try await economic.switches(#"{"changesBeforePut": 1}"#)
            await #expect(
                throws: BackendError.notProcessed(
                    reason: "time entry 1 is being changed by another client", retryAfter: nil)
            ) { try await economic.backend.update(id, to: Fixture.submission(seconds: 7200)) }
            #expect(try await economic.recorded().map(\.numberOfHours) == [2.5])
        }
    }

    @Test func repeatedlyTouchedEntryIsNotProcessed() async throws {
        try await Fixture.run { economic in
            let id = try await economic.backend.create(Fixture.submission())
            try await economic.switches(#"{"touchesBeforePut": 5}"#)
            let error = await #expect(throws: BackendError.self) {
                try await economic.backend.update(id, to: Fixture.submission(seconds: 7200))
            }
            #expect(error?.kind == "notProcessed")
            #expect(try await economic.stats()["updates"] == 2)
        }
    }

    @Test func tooManyRequestsReturnsRetryAfter() async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"rate429": 1, "retryAfterSeconds": 7}"#)
            await #expect(throws: BackendError.notProcessed(reason: "HTTP 429", retryAfter: .seconds(7))) {
                try await economic.backend.create(Fixture.submission())
            }
            let stats = try await economic.stats()
            #expect(stats["records"] == 0)
        }
    }

    @Test func serverErrorIsUnknownForWriteAndNotProcessedForRead() async throws {
        try await Fixture.run { economic in
            let id = try await economic.backend.create(Fixture.submission())
            try await economic.switches(#"{"rate503": 1}"#)
            let write = await #expect(throws: BackendError.self) {
                try await economic.backend.create(Fixture.submission())
            }
            #expect(write?.kind == "outcomeUnknown")
            for call in [
                { _ = try await economic.backend.readBack(id, of: Fixture.ana) },
                // The entry is read before anything is written.
                { _ = try await economic.backend.update(id, to: Fixture.submission()) },
            ] {
                let error = await #expect(throws: BackendError.self) { try await call() }
                #expect(error?.kind == "notProcessed")
            }
        }
    }

    @Test(arguments: ["rateLostAfterWrite", "rate500AfterWrite"])
    func writeWithLostResponseIsFoundOnceByMarker(fault: String) async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"\#(fault)": 1}"#)
            let submission = Fixture.submission()
            let error = await #expect(throws: BackendError.self) { try await economic.backend.create(submission) }
            #expect(error?.kind == "outcomeUnknown")
            let matches = try await economic.backend.lookUp(
                marker: submission.marker, of: Fixture.ana, on: submission.day)
            #expect(matches.map(\.marker) == [submission.marker])
            #expect(try await economic.stats()["records"] == 1)
        }
    }

    @Test func lateCommitIsFoundOnceLater() async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"rateLateCommit": 1, "lateCommitMs": 20, "holdsLateCommits": true}"#)
            let submission = Fixture.submission()
            let error = await #expect(throws: BackendError.self) { try await economic.backend.create(submission) }
            #expect(error?.kind == "outcomeUnknown")
            func find() async throws -> [BackendEntry] {
                try await economic.backend.lookUp(marker: submission.marker, of: Fixture.ana, on: submission.day)
            }
            #expect(try await find().isEmpty)
            try await economic.switches(#"{"holdsLateCommits": false}"#)
            #expect(try await economic.eventually { try await find().count == 1 })
        }
    }

    @Test(arguments: ["wrong:sandbox-grant", "sandbox-app:wrong"])
    func wrongTokensAreUnauthorizedAndNotDisclosed(password: String) async throws {
        try await Fixture.run(password: password) { economic in
            for call in [
                { _ = try await economic.backend.create(Fixture.submission()) },
                { _ = try await economic.backend.readBack("1", of: Fixture.ana) },
            ] {
                let error = await #expect(throws: BackendError.self) { try await call() }
                #expect(error?.kind == "unauthorized" && !"\(String(describing: error))".contains("wrong"))
            }
        }
    }

    @Test func revokedGrantIsUnauthorized() async throws {
        try await Fixture.run { economic in
            try await economic.switches(#"{"isRevoked": true}"#)
            let error = await #expect(throws: BackendError.self) {
                try await economic.backend.create(Fixture.submission())
            }
            #expect(error?.kind == "unauthorized")
        }
    }

    @Test func timedOutWriteIsUnknown() async throws {
        try await Fixture.run(settings: { $0.totalMax = .seconds(3) }) { economic in
            try await economic.switches(#"{"rateSlow": 1, "slowMs": 600000}"#)
            let error = await #expect(throws: BackendError.self) {
                try await economic.backend.create(Fixture.submission())
            }
            #expect(error?.kind == "outcomeUnknown")
        }
    }

    static let own = #"{"errorCode":"X","message":"No","logId":"1"}"#

    @Test(arguments: [
        (204, "", true, "none"), (400, own, true, "refused"), (404, own, true, "refused"), (415, own, true, "refused"),
        (400, "<html>", true, "notProcessed"), (404, "{}", true, "notProcessed"), (400, own, false, "notProcessed"),
        (401, own, true, "unauthorized"), (403, own, false, "unauthorized"), (302, "", true, "unauthorized"),
        (429, own, true, "notProcessed"), (500, own, true, "outcomeUnknown"), (500, own, false, "notProcessed"),
    ]) func statusDeterminesError(status: Int, body: String, isWrite: Bool, kind: String) {
        let head = Array("HTTP/1.1 \(status) X\r\n\r\n".utf8)
        let response = Response(status: status, head: head, body: Array(body.utf8))
        var actual = "none"
        do throws(BackendError) {
            try EconomicResponse.check(response, isWrite: isWrite)
        } catch {
            actual = error.kind
        }
        #expect(actual == kind)
    }

    /// A server that is unavailable may send `Retry-After`, also for a write.
    @Test(arguments: [429, 503], [true, false]) func retryAfterIsReturnedForReadsAndWrites(
        status: Int, isWrite: Bool
    ) {
        let head = Array("HTTP/1.1 \(status) X\r\nRetry-After: 7\r\n\r\n".utf8)
        let response = Response(status: status, head: head, body: Array(Self.own.utf8))
        let error = #expect(throws: BackendError.self) { try EconomicResponse.check(response, isWrite: isWrite) }
        switch error {
        case .notProcessed(_, let wait), .outcomeUnknown(_, let wait): #expect(wait == .seconds(7))
        case .refused, .unauthorized, .deadlineExceeded, nil: Issue.record("\(String(describing: error))")
        }
    }

    @Test(arguments: ["", "app", "app:", ":grant", "a:b:c"]) func passwordNeedsTwoTokens(password: String) {
        #expect(EconomicSettings(baseURL: "https://apis.e-conomic.com", password: password) == nil)
    }

    @Test func settingsDoNotDiscloseTokens() throws {
        let settings = try #require(EconomicSettings(baseURL: "https://apis.e-conomic.com/", password: "secret:token"))
        #expect("\(settings)" == "e-conomic at https://apis.e-conomic.com")
    }
}

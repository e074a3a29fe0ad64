import BackendProtocol
import Backends
import FoundationEssentials
import HTTPClient
import Model
import TestSupport
import Testing

@Suite(.ownThreads) struct SAPFaultTests {
    typealias Fixture = SAPFixture

    @Test func concurrentCallsShareOneToken() async throws {
        try await Fixture.run { sap in
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<50 { group.addTask { try await sap.backend.create(Fixture.submission()) } }
                var ids: Set<String> = []
                for try await id in group { ids.insert(id) }
                #expect(ids.count == 50)
            }
            #expect(try await sap.stats()["tokenFetches"] == 1)
        }
    }

    @Test func expiredSessionIsRenewedOnceAndCallRepeated() async throws {
        try await Fixture.run { sap in
            _ = try await sap.backend.create(Fixture.submission())
            try await sap.post("/sandbox/sessions/end", "{}")
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<20 { group.addTask { _ = try await sap.backend.create(Fixture.submission()) } }
                try await group.waitForAll()
            }
            let stats = try await sap.stats()
            #expect(stats["records"] == 21 && stats["tokenFetches"] == 2)
            #expect((1...20).contains(stats["csrfRefused"] ?? 0))
        }
    }

    @Test func tooManyRequestsReturnsRetryAfter() async throws {
        try await Fixture.run { sap in
            _ = try await sap.backend.create(Fixture.submission())
            try await sap.switches(#"{"rate429": 1, "retryAfterSeconds": 7}"#)
            await #expect(throws: BackendError.notProcessed(reason: "HTTP 429", retryAfter: .seconds(7))) {
                try await sap.backend.create(Fixture.submission())
            }
            #expect(try await sap.stats()["records"] == 1)
        }
    }

    @Test func serviceUnavailableIsUnknownForWriteAndNotProcessedForRead() async throws {
        try await Fixture.run { sap in
            let id = try await sap.backend.create(Fixture.submission())
            try await sap.switches(#"{"rate503": 1}"#)
            let write = await #expect(throws: BackendError.self) { try await sap.backend.create(Fixture.submission()) }
            #expect(write?.kind == "outcomeUnknown")
            let read = await #expect(throws: BackendError.self) { try await sap.backend.readBack(id, of: Fixture.ana) }
            #expect(read?.kind == "notProcessed")
        }
    }

    @Test func lostResponseIsUnknownAndRecordIsFoundOnceByMarker() async throws {
        try await Fixture.run { sap in
            _ = try await sap.backend.create(Fixture.submission())
            try await sap.switches(#"{"rateLostAfterWrite": 1}"#)
            let submission = Fixture.submission()
            let error = await #expect(throws: BackendError.self) { try await sap.backend.create(submission) }
            #expect(error?.kind == "outcomeUnknown")
            let matches = try await sap.backend.lookUp(marker: submission.marker, of: Fixture.ana, on: submission.day)
            #expect(matches.map(\.marker) == [submission.marker])
            #expect(try await sap.recorded().filter { $0.note.hasSuffix(submission.marker) }.count == 1)
        }
    }

    @Test func lateCommitIsFoundOnceLater() async throws {
        try await Fixture.run { sap in
            _ = try await sap.backend.create(Fixture.submission())
            try await sap.switches(#"{"rateLateCommit": 1, "lateCommitMs": 20, "holdsLateCommits": true}"#)
            let submission = Fixture.submission()
            let error = await #expect(throws: BackendError.self) { try await sap.backend.create(submission) }
            #expect(error?.kind == "outcomeUnknown")
            func find() async throws -> [BackendEntry] {
                try await sap.backend.lookUp(marker: submission.marker, of: Fixture.ana, on: submission.day)
            }
            #expect(try await find().isEmpty)
            try await sap.switches(#"{"holdsLateCommits": false}"#)
            #expect(try await sap.eventually { try await find().count == 1 })
        }
    }

    @Test func unreachableAddressIsNotProcessed() async throws {
        let settings = SAPSettings(baseURL: "http://127.0.0.1:1", user: "a", password: "b")
        let backend = SAPBackend(settings, client: Client(), today: { Fixture.today })
        let error = await #expect(throws: BackendError.self) { try await backend.create(Fixture.submission()) }
        #expect(error?.kind == "notProcessed")
    }

    @Test func timedOutWriteIsUnknown() async throws {
        try await Fixture.run(settings: { $0.totalMax = .seconds(3) }) { sap in
            // The login is finished before the timeout starts.
            #expect(try await sap.eventually { (try? await sap.backend.create(Fixture.submission())) != nil })
            try await sap.switches(#"{"rateSlow": 1, "slowMs": 600000}"#)
            let error = await #expect(throws: BackendError.self) { try await sap.backend.create(Fixture.submission()) }
            #expect(error?.kind == "outcomeUnknown")
        }
    }

    /// All faults at once, and the rule of callers: look up before repeating. Each entry exists once.
    @Test func allFaultsLeaveEachEntryExactlyOnce() async throws {
        try await Fixture.run { sap in
            try await sap.switches(
                #"""
                {"rate503": 0.05, "rate429": 0.02, "rateLostAfterWrite": 0.1, "rateLateCommit": 0.05,
                 "lateCommitMs": 20, "seed": 42}
                """#)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<100 { group.addTask { try await submitOnce(Fixture.submission(), to: sap) } }
                try await group.waitForAll()
            }
            let recorded = try await sap.recorded()
            #expect(recorded.count == 100 && Set(recorded.map(\.note)).count == 100)
        }
    }

    private func submitOnce(_ submission: Submission, to sap: Fixture) async throws {
        let backend = sap.backend
        for _ in 0..<50 {
            do throws(BackendError) {
                _ = try await backend.create(submission)
                return
            } catch {
                switch error {
                case .notProcessed: continue
                case .refused, .unauthorized, .deadlineExceeded: throw error
                case .outcomeUnknown:
                    // Until no late commit is in flight, which is the purpose of `settleMin` in the submitter.
                    _ = try await sap.eventually { try await sap.stats()["lateCommitsWaiting"] == 0 }
                    while true {
                        guard
                            let matches = try? await backend.lookUp(
                                marker: submission.marker, of: submission.person, on: submission.day)
                        else { continue }
                        if matches.isEmpty { break }
                        return
                    }
                }
            }
        }
        Issue.record("fifty attempts did not suffice")
    }
}

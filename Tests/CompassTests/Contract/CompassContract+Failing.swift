import BackendContract
import BackendProtocol
import Compass
import TestSupport

/// Failures: the thrown error determines whether a write is retried.
extension CompassContract {
    static let failing = [
        Check("an expired token causes only a new login") { subject in
            let id = try await subject.record()
            try await subject.fixture.post("/sandbox/tokens/end", "{}")
            _ = try await subject.read(id)
            try await subject.fixture.post("/sandbox/tokens/end", "{}")
            let session = try await subject.client.edit(id, before: .never)
            try await subject.fixture.post("/sandbox/tokens/end", "{}")
            _ = try await session.commit([FieldValue("Headline", "after")], before: .never)
            try subject.expect(try await subject.read(id)["Headline"]?.value == "after", "the record was not changed")
        },
        Check("a personal access token is accepted like a password") { subject in
            let client = subject.fixture.compass(as: CompassFixture.anasToken)
            try await client.logIn()
            let id = try await subject.record()
            _ = try await client.record(id)
            try await client.logOff()
        },
        Check("a client that has logged off logs in again automatically") { subject in
            try await subject.client.logIn()
            try await subject.client.logOff()
            try await subject.client.logOff()
            _ = try await subject.client.database()
        },
        Check("rejected credentials need manual action") { subject in
            let id = try await subject.record()
            for account in [CompassAccount.password(user: "ana", password: "wrong"), .personalAccessToken("wrong")] {
                let client = subject.fixture.compass(as: account)
                let attempts = [
                    CompassAttempt("logIn") { try await client.logIn() },
                    CompassAttempt("record") { _ = try await client.record(id) },
                    CompassAttempt("folders") { _ = try await client.folders() },
                    CompassAttempt("create") { _ = try await client.create(before: .never) },
                    CompassAttempt("delete") { try await client.delete(id, before: .never) },
                ]
                try await subject.expect(attempts, toFail: "with \(account)") {
                    if case .unauthorized = $0 { true } else { false }
                }
            }
        },
        Check("an unreachable server processed nothing") { subject in
            let client = subject.fixture.compass { $0.serverURL = "http://127.0.0.1:1" }
            let attempts = writes(client, "SAMPL99999999", .never) + reads(client, "SAMPL99999999")
            try await subject.expect(attempts, toFail: "at an unreachable server", isNotProcessed)
        },
        Check("after a server error, no write is reported as done, and a read is retried") { subject in
            let id = try await subject.record()
            try await subject.fixture.behave(.failing)
            try await subject.expect(writes(subject.client, id, .never), toFail: "by a server error") {
                if case .outcomeUnknown = $0 { true } else { isNotProcessed($0) }
            }
            try await subject.expect(reads(subject.client, id), toFail: "by a server error", isNotProcessed)
        },
        Check("a server error after a commit leaves its outcome open") { try await expectOpen(.failingAfterWrite, $0) },
        Check("a lost response leaves a commit's outcome open") { try await expectOpen(.losingResponses, $0) },
        Check("too many requests are retried after the time in Retry-After") { subject in
            let id = try await subject.record()
            try await subject.fixture.behave(.overloaded(retryAfter: .seconds(7)))
            let attempts = writes(subject.client, id, .never) + reads(subject.client, id)
            try await subject.expect(attempts, toFail: "by 429 with Retry-After: 7") {
                if case .notProcessed(_, retryAfter: .seconds(7)) = $0 { true } else { false }
            }
        },
        Check("a write is not sent after its deadline") { subject in
            let id = try await subject.record()
            let before = try await subject.read(id)
            try await subject.expect(writes(subject.client, id, WriteDeadline(.now)), toFail: "after its deadline") {
                if case .deadlineExceeded = $0 { true } else { false }
            }
            try subject.expect(try await subject.read(id) == before, "the record was changed after the deadline")
        },
        Check("a call ends when its task is cancelled") { subject in
            let id = try await subject.record()
            try await subject.fixture.behave(.stuck)
            let call = Task { try await subject.client.record(id) }
            // Time to begin; a call that has not begun meanwhile also ends.
            try await Task.sleep(for: .milliseconds(200))
            let cancelled = ContinuousClock.now
            call.cancel()
            switch await call.result {
            case .success: throw Contract.Failure("a call to a server that does not answer succeeded")
            case .failure(BackendError.notProcessed): break
            case .failure(let error): throw Contract.Failure("a cancelled call is taken for \(error)")
            }
            let passed = ContinuousClock.now - cancelled
            try subject.expect(passed < .seconds(20), "a cancelled call continued for \(passed)")
        },
    ]

    private static func isNotProcessed(_ error: BackendError) -> Bool {
        if case .notProcessed = error { true } else { false }
    }

    private static func writes(
        _ client: CompassClient, _ id: String, _ deadline: WriteDeadline
    ) -> [CompassAttempt] {
        [
            CompassAttempt("create") { _ = try await client.create(before: deadline) },
            CompassAttempt("edit") { _ = try await client.edit(id, before: deadline) },
            CompassAttempt("commit") {
                _ = try await client.commit(id, [FieldValue("Headline", "too late")], before: deadline)
            },
            CompassAttempt("delete") { try await client.delete(id, before: deadline) },
        ]
    }

    private static func reads(_ client: CompassClient, _ id: String) -> [CompassAttempt] {
        [
            CompassAttempt("repositories") { _ = try await client.repositories() },
            CompassAttempt("database") { _ = try await client.database() },
            CompassAttempt("folders") { _ = try await client.folders() },
            CompassAttempt("recordType") { _ = try await client.recordType() },
            CompassAttempt("record") { _ = try await client.record(id) },
            CompassAttempt("field") { _ = try await client.field("Headline", of: id) },
        ]
    }

    /// Checks that a commit whose response is lost is reported as unknown, and that it was executed.
    private static func expectOpen(_ behaviour: BackendBehaviour, _ subject: CompassSubject) async throws {
        let id = try await subject.record()
        let session = try await subject.client.edit(id, before: .never)
        try await subject.fixture.behave(behaviour)
        let error = try await subject.error(of: "commit") {
            try await session.commit([FieldValue("Headline", "open")], before: .never)
        }
        guard case .outcomeUnknown = error else {
            throw Contract.Failure("a commit may have been done, but is taken for \(error)")
        }
        try await subject.fixture.behave(.normal)
        try subject.expect(try await subject.read(id)["Headline"]?.value == "open", "the commit was not done")
    }
}

internal import BackendContract
internal import BackendProtocol
internal import Compass

/// Bad days: which error is thrown decides whether a write is repeated.
extension CompassContract {
    static let failing = [
        Check("an expired token costs a new login only") { subject in
            let id = try await subject.record()
            try await subject.harness.endTokens()
            _ = try await subject.read(id)
            try await subject.harness.endTokens()
            let session = try await subject.client.edit(id, before: .never)
            try await subject.harness.endTokens()
            _ = try await session.commit([FieldValue("Headline", "after")], before: .never)
            try subject.expect(try await subject.read(id)["Headline"]?.value == "after", "the record was not changed")
        },
        Check("a personal access token is as good as a password") { subject in
            let client = subject.harness.client(.token, pageRowsMax: nil)
            try await client.logIn()
            let id = try await subject.record()
            _ = try await client.record(id)
            try await client.logOff()
        },
        Check("who has logged off logs in again by themselves") { subject in
            try await subject.client.logIn()
            try await subject.client.logOff()
            try await subject.client.logOff()
            _ = try await subject.client.database()
        },
        Check("credentials that are not accepted are for an operator") { subject in
            let id = try await subject.record()
            for access in [CompassAccess.wrongPassword, .wrongToken] {
                let client = subject.harness.client(access, pageRowsMax: nil)
                for attempt in [
                    CompassAttempt("logIn") { try await client.logIn() },
                    CompassAttempt("record") { _ = try await client.record(id) },
                    CompassAttempt("folders") { _ = try await client.folders() },
                    CompassAttempt("create") { _ = try await client.create(before: .never) },
                    CompassAttempt("delete") { try await client.delete(id, before: .never) },
                ] {
                    let error = try await subject.error(of: attempt.name, attempt.call)
                    guard case .unauthorized = error else {
                        throw Contract.Failure("\(access) of \(attempt.name) is taken for \(error)")
                    }
                }
            }
        },
        Check("a server that is not reached has done nothing") { subject in
            let client = subject.harness.client(.nowhere, pageRowsMax: nil)
            for attempt in writes(client, subject.harness.unknownID, .never) + reads(client, subject.harness.unknownID)
            {
                let error = try await subject.error(of: attempt.name, attempt.call)
                guard case .notProcessed = error else {
                    throw Contract.Failure("\(attempt.name) of a server that is not reached is taken for \(error)")
                }
            }
        },
        Check("after a server error nothing is claimed, and a read is tried later") { subject in
            let id = try await subject.record()
            try await subject.harness.behave(.failing)
            for attempt in writes(subject.client, id, .never) {
                switch try await subject.error(of: attempt.name, attempt.call) {
                case .outcomeUnknown, .notProcessed: break
                case let error: throw Contract.Failure("a server error of \(attempt.name) is taken for \(error)")
                }
            }
            for attempt in reads(subject.client, id) {
                let error = try await subject.error(of: attempt.name, attempt.call)
                guard case .notProcessed = error else {
                    throw Contract.Failure("a server error of \(attempt.name) is taken for \(error)")
                }
            }
        },
        Check("a server error after a commit leaves its outcome open") { try await expectOpen(.failingAfterWrite, $0) },
        Check("a lost answer leaves a commit's outcome open") { try await expectOpen(.losingResponses, $0) },
        Check("too many requests are tried later, not before the time named") { subject in
            let id = try await subject.record()
            try await subject.harness.behave(.overloaded(retryAfter: .seconds(7)))
            for attempt in writes(subject.client, id, .never) + reads(subject.client, id) {
                let error = try await subject.error(of: attempt.name, attempt.call)
                guard case .notProcessed(_, retryAfter: .seconds(7)) = error else {
                    throw Contract.Failure("429 with Retry-After: 7 of \(attempt.name) is taken for \(error)")
                }
            }
        },
        Check("a write whose time is over is not sent") { subject in
            let id = try await subject.record()
            let before = try await subject.read(id)
            for attempt in writes(subject.client, id, WriteDeadline(.now)) {
                let error = try await subject.error(of: attempt.name, attempt.call)
                guard case .deadlineExceeded = error else {
                    throw Contract.Failure("\(attempt.name) after its deadline is taken for \(error)")
                }
            }
            try subject.expect(try await subject.read(id) == before, "the record was changed after the deadline")
        },
        Check("a call ends when its task is cancelled") { subject in
            let id = try await subject.record()
            try await subject.harness.behave(.stuck)
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
        try await subject.harness.behave(behaviour)
        let error = try await subject.error(of: "commit") {
            try await session.commit([FieldValue("Headline", "open")], before: .never)
        }
        guard case .outcomeUnknown = error else {
            throw Contract.Failure("a commit may have been done, but is taken for \(error)")
        }
        try await subject.harness.behave(.normal)
        try subject.expect(try await subject.read(id)["Headline"]?.value == "open", "the commit was not done")
    }
}

internal import BackendProtocol
internal import FoundationEssentials
internal import Model

/// Checks of errors, which decide whether a write is repeated.
extension Contract {
    static let failing = [
        Check("a server error leaves writes open and defers reads") { subject in
            // The first call logs in, if the adapter needs a login.
            let id = try await subject.backend.create(subject.submission())
            let submission = subject.submission()
            try await subject.harness.behave(.failing)
            let write = try await subject.error(of: "create") { try await subject.backend.create(submission) }
            switch write {
            case .outcomeUnknown, .notProcessed: break
            case .refused, .unauthorized, .deadlineExceeded:
                throw Failure("a server error of a write is reported as \(write)")
            }
            for call in reads(id, subject) {
                let error = try await subject.error(of: call)
                guard case .notProcessed = error else {
                    throw Failure("a server error of \(call.name) is reported as \(error), not as notProcessed")
                }
            }
            try await subject.harness.behave(.normal)
            try await subject.expect(0, of: submission, "after an error without a write")
        },
        Check("a server error after a write leaves its outcome unknown") {
            try await expectUnknownOutcome(.failingAfterWrite, $0)
        },
        Check("a lost response leaves a write's outcome unknown") {
            try await expectUnknownOutcome(.losingResponses, $0)
        },
        Check("429 defers every call until Retry-After") { subject in
            let id = try await subject.backend.create(subject.submission())
            let submission = subject.submission()
            try await subject.harness.behave(.overloaded(retryAfter: .seconds(7)))
            let write = NamedCall("create") { _ = try await subject.backend.create(submission) }
            for call in [write] + reads(id, subject) {
                let error = try await subject.error(of: call)
                guard case .notProcessed(_, retryAfter: .seconds(7)) = error else {
                    throw Failure("429 with Retry-After: 7 of \(call.name) is reported as \(error)")
                }
            }
            try await subject.harness.behave(.normal)
            try await subject.expect(0, of: submission, "after 429")
        },
        Check("wrong credentials are reported as unauthorized") { subject in
            let id = try await subject.backend.create(subject.submission())
            let backend = subject.harness.backend(.wrongCredentials)
            for call in [
                NamedCall("create") { _ = try await backend.create(subject.submission()) },
                NamedCall("readBack") { _ = try await backend.readBack(id, of: subject.person) },
                NamedCall("reportingData") { _ = try await backend.reportingData(of: subject.person) },
            ] {
                let error = try await subject.error(of: call)
                guard case .unauthorized = error else {
                    throw Failure("wrong credentials of \(call.name) are reported as \(error)")
                }
            }
        },
        Check("an unreachable back end has processed nothing") { subject in
            let backend = subject.harness.backend(.unreachable)
            let error = try await subject.error(of: "create") { try await backend.create(subject.submission()) }
            guard case .notProcessed = error else {
                throw Failure("an unreachable back end is reported as \(error), not as notProcessed")
            }
        },
        Check("a write is not sent after its deadline") { subject in
            let unchanged = subject.submission()
            let id = try await subject.backend.create(unchanged)
            let deadline = WriteDeadline(.now)
            var (late, change) = (subject.submission(), subject.submission(unchanged.marker, seconds: 60))
            (late.before, change.before) = (deadline, deadline)
            for call in [
                NamedCall("create") { [late] in _ = try await subject.backend.create(late) },
                NamedCall("update") { [change] in _ = try await subject.backend.update(id, to: change) },
                NamedCall("delete") { try await subject.backend.delete(id, of: subject.person, before: deadline) },
            ] {
                let error = try await subject.error(of: call)
                guard case .deadlineExceeded = error else {
                    throw Failure("\(call.name) after its deadline is reported as \(error), not as deadlineExceeded")
                }
            }
            try await subject.expect(0, of: late, "after a create that was not sent")
            try subject.expect(try await subject.readBack(id), is: unchanged)
        },
        Check("a call ends when its task is cancelled") { subject in
            _ = try await subject.backend.create(subject.submission())
            try await subject.harness.behave(.stuck)
            let call = Task { try await subject.backend.create(subject.submission()) }
            // Gives the call time to start; a call that has not started ends too.
            try await Task.sleep(for: .milliseconds(200))
            let cancelled = ContinuousClock.now
            call.cancel()
            switch await call.result {
            case .success: throw Failure("a call succeeded although the back end did not respond")
            case .failure(BackendError.notProcessed), .failure(BackendError.outcomeUnknown): break
            case .failure(let error): throw Failure("a cancelled call is reported as \(error)")
            }
            let passed = ContinuousClock.now - cancelled
            try subject.expect(passed < .seconds(20), "a cancelled call ended only after \(passed)")
        },
    ]

    private static func reads(_ id: String, _ subject: ContractSubject) -> [NamedCall] {
        let (backend, person, day) = (subject.backend, subject.person, subject.day(0))
        return [
            NamedCall("readBack") { _ = try await backend.readBack(id, of: person) },
            NamedCall("lookUp") { _ = try await backend.lookUp(marker: "#x#", of: person, on: day) },
            NamedCall("entries") { _ = try await backend.entries(of: person, from: day, through: day) },
            NamedCall("reportingData") { _ = try await backend.reportingData(of: person) },
        ]
    }

    /// Asserts that writes whose responses are lost throw `outcomeUnknown`, and that their results can be looked up.
    private static func expectUnknownOutcome(_ behaviour: BackendBehaviour, _ subject: ContractSubject) async throws {
        let deleted = subject.submission()
        let id = try await subject.backend.create(deleted)
        let submission = subject.submission()
        try await subject.harness.behave(behaviour)
        for call in [
            NamedCall("create") { _ = try await subject.backend.create(submission) },
            NamedCall("update") {
                _ = try await subject.backend.update(id, to: subject.submission(deleted.marker, seconds: 60))
            },
            NamedCall("delete") { try await subject.backend.delete(id, of: subject.person, before: .never) },
        ] {
            let error = try await subject.error(of: call)
            guard case .outcomeUnknown = error else {
                throw Failure("\(call.name) may have been processed, but is reported as \(error)")
            }
        }
        try await subject.harness.behave(.normal)
        try await subject.expect(1, of: submission, "after a create with a lost response")
        try await subject.expect(0, of: deleted, "after a delete with a lost response")
    }
}

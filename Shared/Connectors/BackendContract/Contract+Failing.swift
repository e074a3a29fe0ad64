internal import BackendProtocol
internal import FoundationEssentials
internal import Model

/// Bad days: which error is thrown decides whether a write is repeated.
extension Contract {
    static let failing = [
        Check("after a server error nothing is claimed, and a read is tried later") { subject in
            // An adapter that must log in first has done so.
            let id = try await subject.backend.create(subject.submission())
            let submission = subject.submission()
            try await subject.harness.behave(.failing)
            let write = try await subject.error(of: "create") { try await subject.backend.create(submission) }
            switch write {
            case .outcomeUnknown, .notProcessed: break
            case .refused, .unauthorized, .tooLate: throw Failure("a server error of a write is taken for \(write)")
            }
            for attempt in reads(id, subject) {
                let error = try await subject.error(of: attempt)
                guard case .notProcessed = error else {
                    throw Failure("a server error of \(attempt.name) is taken for \(error), not for notProcessed")
                }
            }
            try await subject.harness.behave(.normal)
            try await subject.expect(0, of: submission, "after an error before anything was written")
        },
        Check("a server error after a write leaves its outcome open") { try await expectOpen(.failingAfterWrite, $0) },
        Check("a lost answer leaves a write's outcome open") { try await expectOpen(.losingAnswers, $0) },
        Check("too many requests are tried later, not before the time named") { subject in
            let id = try await subject.backend.create(subject.submission())
            let submission = subject.submission()
            try await subject.harness.behave(.overloaded(retryAfter: .seconds(7)))
            let write = Attempt("create") { _ = try await subject.backend.create(submission) }
            for attempt in [write] + reads(id, subject) {
                let error = try await subject.error(of: attempt)
                guard case .notProcessed(_, retryAfter: .seconds(7)) = error else {
                    throw Failure("429 with Retry-After: 7 of \(attempt.name) is taken for \(error)")
                }
            }
            try await subject.harness.behave(.normal)
            try await subject.expect(0, of: submission, "after it was too much")
        },
        Check("wrong credentials are for an operator") { subject in
            let id = try await subject.backend.create(subject.submission())
            let backend = subject.harness.backend(.wrongCredentials)
            for attempt in [
                Attempt("create") { _ = try await backend.create(subject.submission()) },
                Attempt("readBack") { _ = try await backend.readBack(id, of: subject.person) },
                Attempt("reportingData") { _ = try await backend.reportingData(of: subject.person) },
            ] {
                let error = try await subject.error(of: attempt)
                guard case .unauthorized = error else {
                    throw Failure("wrong credentials of \(attempt.name) are taken for \(error)")
                }
            }
        },
        Check("a back end that is not reached has done nothing") { subject in
            let backend = subject.harness.backend(.nowhere)
            let error = try await subject.error(of: "create") { try await backend.create(subject.submission()) }
            guard case .notProcessed = error else {
                throw Failure("a back end that is not reached is taken for \(error), not for notProcessed")
            }
        },
        Check("a write whose time is over is not sent") { subject in
            let known = subject.submission()
            let id = try await subject.backend.create(known)
            let over = WriteDeadline(.now)
            var (late, change) = (subject.submission(), subject.submission(known.marker, seconds: 60))
            (late.before, change.before) = (over, over)
            for attempt in [
                Attempt("create") { [late] in _ = try await subject.backend.create(late) },
                Attempt("update") { [change] in _ = try await subject.backend.update(id, to: change) },
                Attempt("delete") { try await subject.backend.delete(id, of: subject.person, before: over) },
            ] {
                let error = try await subject.error(of: attempt)
                guard case .tooLate = error else {
                    throw Failure("\(attempt.name) after its deadline is taken for \(error), not for tooLate")
                }
            }
            try await subject.expect(0, of: late, "after a creation that was not sent")
            try subject.expect(try await subject.readBack(id), is: known)
        },
        Check("a call ends when its task is cancelled") { subject in
            _ = try await subject.backend.create(subject.submission())
            try await subject.harness.behave(.stuck)
            let call = Task { try await subject.backend.create(subject.submission()) }
            // Time to get under way; a call that has not begun by then ends too.
            try await Task.sleep(for: .milliseconds(200))
            let cancelled = ContinuousClock.now
            call.cancel()
            switch await call.result {
            case .success: throw Failure("a call to a back end that does not answer succeeded")
            case .failure(BackendError.notProcessed), .failure(BackendError.outcomeUnknown): break
            case .failure(let error): throw Failure("a cancelled call is taken for \(error)")
            }
            let passed = ContinuousClock.now - cancelled
            try subject.expect(passed < .seconds(20), "a cancelled call went on for \(passed)")
        },
    ]

    private static func reads(_ id: String, _ subject: Subject) -> [Attempt] {
        let (backend, person, day) = (subject.backend, subject.person, subject.day(0))
        return [
            Attempt("readBack") { _ = try await backend.readBack(id, of: person) },
            Attempt("lookUp") { _ = try await backend.lookUp(marker: "#x#", of: person, on: day) },
            Attempt("entries") { _ = try await backend.entries(of: person, from: day, through: day) },
            Attempt("reportingData") { _ = try await backend.reportingData(of: person) },
        ]
    }

    /// That a write that was done, and whose answer does not say so, is neither claimed nor denied; and found.
    private static func expectOpen(_ behaviour: BackendBehaviour, _ subject: Subject) async throws {
        let known = subject.submission()
        let id = try await subject.backend.create(known)
        let submission = subject.submission()
        try await subject.harness.behave(behaviour)
        for attempt in [
            Attempt("create") { _ = try await subject.backend.create(submission) },
            Attempt("update") {
                _ = try await subject.backend.update(id, to: subject.submission(known.marker, seconds: 60))
            },
            Attempt("delete") { try await subject.backend.delete(id, of: subject.person, before: .never) },
        ] {
            let error = try await subject.error(of: attempt)
            guard case .outcomeUnknown = error else {
                throw Failure("\(attempt.name) may have been done, but is taken for \(error)")
            }
        }
        try await subject.harness.behave(.normal)
        try await subject.expect(1, of: submission, "after a creation that was done")
        try await subject.expect(0, of: known, "after a deletion that was done")
    }
}

internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

/// A call with its name, for checks that make several.
struct Attempt: Sendable {
    let name: String
    let call: @Sendable () async throws -> Void

    init(_ name: String, _ call: @escaping @Sendable () async throws -> Void) {
        self.name = name
        self.call = call
    }
}

/// What a check works with.
struct Subject: Sendable {
    let harness: any BackendHarness
    let backend: any TimeBackend

    init(harness: any BackendHarness) {
        self.harness = harness
        backend = harness.backend(.granted)
    }

    var person: BackendPerson { harness.person }

    /// One of the ten days on which time may be registered.
    func day(_ offset: Int) -> Day { harness.firstDay.adding(days: offset) }

    /// An entry with a marker of its own, unless one is given.
    func submission(
        _ marker: String = EntryMarker.marker(of: UUID()), on offset: Int = 0, seconds: Int = 5400,
        text: String? = "Contract", references: [String: String]? = nil
    ) -> Submission {
        Submission(
            marker: marker, person: person, day: day(offset), durationSeconds: seconds, text: text,
            references: references ?? harness.references)
    }

    /// The seconds that a back end of this kind keeps of a length.
    func kept(_ seconds: Int) -> Int {
        let step = max(1, backend.capabilities.durationStepSeconds)
        return (seconds + step / 2) / step * step
    }

    func lookUp(_ submission: Submission) async throws -> [BackendEntry] {
        try await backend.lookUp(marker: submission.marker, of: submission.person, on: submission.day)
    }

    func readBack(_ id: String) async throws -> BackendEntry {
        guard let entry = try await backend.readBack(id, of: person) else {
            throw Contract.Failure("readBack(\(id)) finds nothing, though the record was just written")
        }
        return entry
    }

    // MARK: Expectations

    func expect(_ condition: Bool, _ problem: @autoclosure () -> String) throws {
        if !condition { throw Contract.Failure(problem()) }
    }

    /// That the marker is found `count` times where its entry is.
    func expect(_ count: Int, of submission: Submission, _ when: String) async throws {
        let found = try await lookUp(submission)
        try expect(
            found.count == count && found.allSatisfy { $0.marker == submission.marker },
            "\(when), lookUp finds \(found.map(\.id)): \(count) expected, all with the marker \(submission.marker)")
    }

    /// That the record is what was submitted.
    func expect(_ entry: BackendEntry, is submission: Submission) throws {
        func compare<Value: Equatable>(_ what: String, _ found: Value, _ sent: Value) throws {
            try expect(found == sent, "the record's \(what) is \(found), not \(sent)")
        }
        try compare("marker", entry.marker, submission.marker)
        try compare("day", entry.day, submission.day)
        try compare("text", entry.text, submission.text)
        try compare("length in seconds", entry.durationSeconds, kept(submission.durationSeconds))
        for (context, reference) in entry.references {
            try compare("\(context)", reference, submission.references[context] ?? "none")
        }
    }

    /// The error that a call throws.
    func error<Answer>(of what: String, _ call: () async throws -> Answer) async throws -> BackendError {
        do {
            let answer = try await call()
            throw Contract.Failure("\(what) should throw, but gave \(answer)")
        } catch let error as BackendError {
            return error
        }
    }

    func error(of attempt: Attempt) async throws -> BackendError { try await error(of: attempt.name, attempt.call) }

    func expectRefusal<Answer>(of what: String, _ call: () async throws -> Answer) async throws {
        let error = try await error(of: what, call)
        guard case .refused(let messages) = error else {
            throw Contract.Failure("\(what) should be refused, but threw \(error)")
        }
        try expect(
            !messages.isEmpty && messages.allSatisfy { $0.contains { !$0.isWhitespace } },
            "\(what) is refused without words a person could read: \(messages)")
    }
}

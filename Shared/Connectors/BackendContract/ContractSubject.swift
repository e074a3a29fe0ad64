internal import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

/// A call with its name, for checks that verify several calls.
struct NamedCall: Sendable {
    let name: String
    let call: @Sendable () async throws -> Void

    init(_ name: String, _ call: @escaping @Sendable () async throws -> Void) {
        self.name = name
        self.call = call
    }
}

/// The adapter under test with its harness and assertions.
struct ContractSubject: Sendable {
    let harness: any BackendHarness
    let backend: any TimeBackend

    init(harness: any BackendHarness) {
        self.harness = harness
        backend = harness.backend(.granted)
    }

    var person: BackendPerson { harness.person }

    /// One of the ten days on which time may be registered.
    func day(_ offset: Int) -> Day { harness.firstDay.adding(days: offset) }

    /// Returns a submission with a new marker by default.
    func submission(
        _ marker: String = EntryMarker.marker(of: UUID()), on offset: Int = 0, seconds: Int = 5400,
        text: String? = "Contract", references: [String: String]? = nil
    ) -> Submission {
        Submission(
            marker: marker, person: person, day: day(offset), durationSeconds: seconds, text: text,
            references: references ?? harness.references)
    }

    /// Returns a length as a back end with these capabilities stores it.
    func rounded(_ seconds: Int) -> Int {
        let step = max(1, backend.capabilities.durationStepSeconds)
        return (seconds + step / 2) / step * step
    }

    func lookUp(_ submission: Submission) async throws -> [BackendEntry] {
        try await backend.lookUp(marker: submission.marker, of: submission.person, on: submission.day)
    }

    func readBack(_ id: String) async throws -> BackendEntry {
        guard let entry = try await backend.readBack(id, of: person) else {
            throw Contract.Failure("readBack(\(id)) returns nil for a record that was just written")
        }
        return entry
    }

    // MARK: Assertions

    func expect(_ condition: Bool, _ problem: @autoclosure () -> String) throws {
        if !condition { throw Contract.Failure(problem()) }
    }

    /// Asserts that `lookUp` finds `count` records with the submission's marker.
    func expect(_ count: Int, of submission: Submission, _ when: String) async throws {
        let matches = try await lookUp(submission)
        try expect(
            matches.count == count && matches.allSatisfy { $0.marker == submission.marker },
            "\(when), lookUp returns \(matches.map(\.id)): \(count) expected, all with the marker \(submission.marker)")
    }

    /// Asserts that a record has the submitted values.
    func expect(_ entry: BackendEntry, is submission: Submission) throws {
        func compare<Value: Equatable>(_ field: String, _ actual: Value, _ expected: Value) throws {
            try expect(actual == expected, "the record's \(field) is \(actual), not \(expected)")
        }
        try compare("marker", entry.marker, submission.marker)
        try compare("day", entry.day, submission.day)
        try compare("text", entry.text, submission.text)
        try compare("length in seconds", entry.durationSeconds, rounded(submission.durationSeconds))
        for (context, reference) in entry.references {
            try compare("\(context)", reference, submission.references[context] ?? "none")
        }
    }

    /// Returns the error that a call throws.
    func error<Value>(of name: String, _ call: () async throws -> Value) async throws -> BackendError {
        do {
            let value = try await call()
            throw Contract.Failure("\(name) should throw, but returned \(value)")
        } catch let error as BackendError {
            return error
        }
    }

    func error(of call: NamedCall) async throws -> BackendError { try await error(of: call.name, call.call) }

    func expectRefusal<Value>(of name: String, _ call: () async throws -> Value) async throws {
        let error = try await error(of: name, call)
        guard case .refused(let messages) = error else {
            throw Contract.Failure("\(name) should be refused, but threw \(error)")
        }
        try expect(
            !messages.isEmpty && messages.allSatisfy { $0.contains { !$0.isWhitespace } },
            "\(name) is refused without a readable message: \(messages)")
    }
}

internal import BackendProtocol
internal import FoundationEssentials
internal import Model

/// What has changed, for back ends that tell.
extension Contract {
    static let following = [
        Check("what is created, changed and approved is told", where: \.tellsChanges) { subject in
            var reading = try await Reading(subject, of: [subject.person])
            let old = subject.submission()
            let id = try await subject.backend.create(old)
            try await reading.expect(id, "created") { $0.marker == old.marker }
            let new = subject.submission(old.marker, on: 1, seconds: 7200, references: subject.harness.otherReferences)
            let newID = try await subject.backend.update(id, to: new)
            try await reading.expect(newID, "changed") { $0.day == new.day }
            if let entry = reading.told[newID]?.entry { try subject.expect(entry, is: new) }
            try await subject.harness.approve(newID)
            try await reading.expect(newID, "approved") { $0.status == .approved || $0.status == .recorded }
        },
        Check("what is written while changes are read is told", where: \.tellsChanges) { subject in
            var reading = try await Reading(subject, of: [subject.person])
            var ids: [String] = []
            for index in 0..<10 {
                ids.append(try await subject.backend.create(subject.submission(on: index)))
                _ = try await reading.readPart()
            }
            for id in ids { try await reading.expect(id, "created") { _ in true } }
        },
        Check("what is read again from its cursor is told again", where: \.tellsChanges) { subject in
            var first = try await Reading(subject, of: [subject.person])
            var second = first
            for index in 0..<3 { _ = try await subject.backend.create(subject.submission(on: index)) }
            try await first.readToTheEnd()
            try await second.readToTheEnd()
            let missing = Set(first.told.keys).subtracting(second.told.keys)
            try subject.expect(missing.isEmpty, "a second reading from the same cursor does not tell \(missing)")
        },
        Check("a record is told as its person's, and to nobody who did not ask", where: \.tellsChanges) { subject in
            let other = subject.harness.otherPerson
            var ofOne = try await Reading(subject, of: [subject.person])
            var ofBoth = try await Reading(subject, of: [subject.person, other])
            var submission = subject.submission()
            let id = try await subject.backend.create(submission)
            submission = subject.submission()
            submission.person = other
            let otherID = try await subject.backend.create(submission)
            for (id, person) in [(id, subject.person), (otherID, other)] {
                try await ofBoth.expect(id, "created") { _ in true }
                let told = ofBoth.told[id]?.person
                try subject.expect(told == person.email, "the record \(id) is told as that of \(told ?? "nobody")")
            }
            try await ofOne.expect(id, "created") { _ in true }
            try subject.expect(ofOne.told[otherID] == nil, "another person's record is told")
        },
    ]
}

/// Reads what a back end tells to have changed.
private struct Reading {
    private static let partsMax = 10_000
    private static let visibleMax = Duration.seconds(30)

    let subject: Subject
    let people: [BackendPerson]
    private var cursor: String?
    /// By id: what was told last.
    private(set) var told: [String: BackendChanges.Change] = [:]

    /// Begins here.
    init(_ subject: Subject, of people: [BackendPerson]) async throws {
        self.subject = subject
        self.people = people
        try await readToTheEnd()
    }

    /// - Returns: Whether there is more.
    mutating func readPart() async throws -> Bool {
        let part = try await subject.backend.changes(of: people, since: cursor)
        cursor = part.cursor
        for change in part.changes { told[change.entry.id] = change }
        return part.hasMore
    }

    mutating func readToTheEnd() async throws {
        for _ in 0..<Self.partsMax where try await !readPart() { return }
        throw Contract.Failure("there are more than \(Self.partsMax) parts of changes")
    }

    /// That the record is told as it is now, after a while at most.
    mutating func expect(_ id: String, _ what: String, _ isMet: (BackendEntry) -> Bool) async throws {
        let deadline = ContinuousClock.now + Self.visibleMax
        while true {
            if let entry = told[id]?.entry, isMet(entry) { return }
            guard .now < deadline else { break }
            try await readToTheEnd()
            try await Task.sleep(for: .milliseconds(20))
        }
        let found = told[id].map { "only as \($0.entry)" } ?? "not at all"
        throw Contract.Failure("the record \(id) was \(what), and is told \(found)")
    }
}

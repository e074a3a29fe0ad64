internal import BackendProtocol
internal import FoundationEssentials
internal import Model

/// Checks of the change feed, for back ends that have one.
extension Contract {
    static let following = [
        Check("created, changed and approved records are reported", where: \.supportsChangeFeed) { subject in
            var reader = try await ChangeReader(subject, of: [subject.person])
            let old = subject.submission()
            let id = try await subject.backend.create(old)
            try await reader.expect(id, "created") { $0.marker == old.marker }
            let new = subject.submission(old.marker, on: 1, seconds: 7200, references: subject.harness.otherReferences)
            let newID = try await subject.backend.update(id, to: new)
            try await reader.expect(newID, "changed") { $0.day == new.day }
            if let entry = reader.changes[newID]?.entry { try subject.expect(entry, is: new) }
            try await subject.harness.approve(newID)
            try await reader.expect(newID, "approved") { $0.status == .approved || $0.status == .recorded }
        },
        Check("records written while changes are read are reported", where: \.supportsChangeFeed) { subject in
            var reader = try await ChangeReader(subject, of: [subject.person])
            var ids: [String] = []
            for index in 0..<10 {
                ids.append(try await subject.backend.create(subject.submission(on: index)))
                _ = try await reader.readPage()
            }
            for id in ids { try await reader.expect(id, "created") { _ in true } }
        },
        Check("a cursor can be read again", where: \.supportsChangeFeed) { subject in
            var first = try await ChangeReader(subject, of: [subject.person])
            var second = first
            for index in 0..<3 { _ = try await subject.backend.create(subject.submission(on: index)) }
            try await first.readToTheEnd()
            try await second.readToTheEnd()
            let missing = Set(first.changes.keys).subtracting(second.changes.keys)
            try subject.expect(missing.isEmpty, "a second read from the same cursor omits \(missing)")
        },
        Check("changes name the owner and are limited to the requested people", where: \.supportsChangeFeed) {
            subject in
            let other = subject.harness.otherPerson
            var readerOfOne = try await ChangeReader(subject, of: [subject.person])
            var readerOfBoth = try await ChangeReader(subject, of: [subject.person, other])
            var submission = subject.submission()
            let id = try await subject.backend.create(submission)
            submission = subject.submission()
            submission.person = other
            let otherID = try await subject.backend.create(submission)
            for (id, person) in [(id, subject.person), (otherID, other)] {
                try await readerOfBoth.expect(id, "created") { _ in true }
                let owner = readerOfBoth.changes[id]?.person
                try subject.expect(
                    owner == person.email, "the owner of the record \(id) is reported as \(owner ?? "nil")")
            }
            try await readerOfOne.expect(id, "created") { _ in true }
            try subject.expect(readerOfOne.changes[otherID] == nil, "another person's record is reported")
        },
    ]
}

/// Follows the change feed of a back end.
private struct ChangeReader {
    private static let pagesMax = 10_000
    private static let visibleMax = Duration.seconds(30)

    let subject: ContractSubject
    let people: [BackendPerson]
    private var cursor: String?
    /// The latest change by record id.
    private(set) var changes: [String: BackendChanges.Change] = [:]

    /// Creates a reader at the current position.
    init(_ subject: ContractSubject, of people: [BackendPerson]) async throws {
        self.subject = subject
        self.people = people
        try await readToTheEnd()
    }

    /// Reads one page and returns whether there are more.
    mutating func readPage() async throws -> Bool {
        let page = try await subject.backend.changes(of: people, since: cursor)
        cursor = page.cursor
        for change in page.changes { changes[change.entry.id] = change }
        return page.hasMore
    }

    mutating func readToTheEnd() async throws {
        for _ in 0..<Self.pagesMax where try await !readPage() { return }
        throw Contract.Failure("there are more than \(Self.pagesMax) pages of changes")
    }

    /// Asserts that the record is reported in the expected state within `visibleMax`.
    mutating func expect(_ id: String, _ event: String, _ isMet: (BackendEntry) -> Bool) async throws {
        let deadline = ContinuousClock.now + Self.visibleMax
        while true {
            if let entry = changes[id]?.entry, isMet(entry) { return }
            guard .now < deadline else { break }
            try await readToTheEnd()
            try await Task.sleep(for: .milliseconds(20))
        }
        let actual = changes[id].map { "only as \($0.entry)" } ?? "not at all"
        throw Contract.Failure("the record \(id) was \(event), and is reported \(actual)")
    }
}

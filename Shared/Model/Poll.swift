public import Essentials

/// Fields of a `Poll` object: one person's choices and records are to be read from the back end, or what has changed
/// of anybody's records.
///
/// One per person and one for changes, in the realm `/polls`. The next run replaces it, and what was read for an
/// earlier one is dropped.
public struct Poll: Codable, Equatable, Sendable {
    /// Grows with every run of the person's environment; ``runOfAnother`` asks for another one.
    public var run: Int64
    /// The person's e-mail address; nobody's (``ofChanges``) in the poll of what has changed.
    public var person: String
    /// When it was to begin.
    public var dueAt: Timestamp

    /// A poll.
    public init(run: Int64, person: String, dueAt: Timestamp) {
        self.run = run
        self.person = person
        self.dueAt = dueAt
    }

    /// The `run` of a poll that is done, and whose person is to be read by the next run, whatever that reads.
    package static let runOfAnother: Int64 = 0

    /// The `person` of the poll of changes. A service that does not know that poll finds no such person, and passes it
    /// over.
    public static let ofChanges = ""
}

extension Poll: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case run, person, dueAt
    }

    /// The row of ``Kind/poll``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [], route: Route(to: Topics.poll, from: [.system]))
}

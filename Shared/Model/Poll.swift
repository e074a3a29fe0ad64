/// Fields of a `Poll` object: one person's choices and records are to be read from the back end.
///
/// One per person, in the realm `/polls`. The next run replaces it, and what was read for an earlier one is dropped.
public struct Poll: Codable, Equatable, Sendable {
    /// Grows with every run of the person's environment.
    public var run: Int64
    /// The person's e-mail address.
    public var person: String
    /// When it was to begin.
    public var dueAt: Timestamp

    /// A poll.
    public init(run: Int64, person: String, dueAt: Timestamp) {
        self.run = run
        self.person = person
        self.dueAt = dueAt
    }
}

public import Essentials

/// Fields of a `Poll` object: a request to read one person's choices and records from the back end, or the recent
/// changes of all people's records.
///
/// One per person and one for changes, in the realm `/polls`. The next run replaces it; results of an earlier run are
/// discarded.
public struct Poll: Codable, Equatable, Sendable {
    /// The run's number, which increases with every run of the environment; `repeatRequestedRun` requests a
    /// repetition.
    public var run: Int64
    /// The person's e-mail address; `changesPerson` in the poll of changes.
    public var person: String
    /// The scheduled time.
    public var dueAt: Timestamp

    /// Creates the fields of a poll.
    public init(run: Int64, person: String, dueAt: Timestamp) {
        self.run = run
        self.person = person
        self.dueAt = dueAt
    }

    /// The `run` of a completed poll whose person must be read completely by the next run, independent of its scope.
    package static let repeatRequestedRun: Int64 = 0

    /// The `person` of the poll of changes. A service version without that poll finds no person with this address and
    /// skips it.
    public static let changesPerson = ""
}

extension Poll: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case run, person, dueAt
    }

    /// The row of ``Kind/poll``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [], route: Route(to: Topics.poll, from: [.system]))
}

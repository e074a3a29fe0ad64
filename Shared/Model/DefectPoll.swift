public import Essentials

/// Fields of a `DefectPoll` object: a request to read the environment's defect tracker.
///
/// One per scope and environment or, if people's own logins are used, per scope and person; in the realm `/polls`. The
/// next run replaces it; results of an earlier run are discarded.
public struct DefectPoll: Codable, Equatable, Sendable {
    /// The records that are read.
    public enum Scope: String, Codable, CaseIterable, Sendable {
        /// The changes since the watermark.
        case changes
        /// All defects, for comparison with people's mirrors.
        case comparison
    }

    /// The run's number, which increases with every run of the scope in the environment or of the person.
    public var run: Int64
    /// The records to read.
    public var scope: Scope
    /// The e-mail address of the person whose login is used and who alone receives the results; `nil`: the
    /// environment's account is used, for all people.
    public var person: String?
    /// The scheduled time.
    public var dueAt: Timestamp

    /// Creates the fields of a poll.
    public init(run: Int64, scope: Scope, person: String? = nil, dueAt: Timestamp) {
        self.run = run
        self.scope = scope
        self.person = person
        self.dueAt = dueAt
    }
}

extension DefectPoll: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case run, scope, person, dueAt
    }

    /// The row of ``Kind/defectPoll``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [], route: Route(to: Topics.defectPoll, from: [.system]))
}

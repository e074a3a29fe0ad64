public import Essentials

/// Fields of a `DefectPoll` object: the tracker of defects of an environment is to be read.
///
/// One per scope, of the environment or, where people are told by their own logins, of each of them; in the realm
/// `/polls`. The next run replaces it, and what was read for an earlier one is dropped.
public struct DefectPoll: Codable, Equatable, Sendable {
    /// What is read.
    public enum Scope: String, Codable, CaseIterable, Sendable {
        /// What has happened since the watermark: a round.
        case changes
        /// Every defect there is, to compare people's mirrors with.
        case comparison
    }

    /// Grows with every run of this scope, in the environment or of the person.
    public var run: Int64
    /// What is to be read.
    public var scope: Scope
    /// The e-mail address of the person with whose own login it is read, and who alone is told; `nil`: it is read with
    /// the environment's account, for everybody.
    public var person: String?
    /// When it was to begin.
    public var dueAt: Timestamp

    /// A poll.
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

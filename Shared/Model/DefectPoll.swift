public import Essentials

/// Fields of a `DefectPoll` object: the tracker of defects of an environment is to be read.
///
/// One per environment and scope, in the realm `/polls`. The next run replaces it, and what was read for an earlier one
/// is dropped.
public struct DefectPoll: Codable, Equatable, Sendable {
    /// What is read.
    public enum Scope: String, Codable, CaseIterable, Sendable {
        /// What has happened since the watermark: a round.
        case changes
        /// Every defect there is, to compare people's mirrors with.
        case comparison
    }

    /// Grows with every run of this scope in the environment.
    public var run: Int64
    /// What is to be read.
    public var scope: Scope
    /// When it was to begin.
    public var dueAt: Timestamp

    /// A poll.
    public init(run: Int64, scope: Scope, dueAt: Timestamp) {
        self.run = run
        self.scope = scope
        self.dueAt = dueAt
    }
}

extension DefectPoll: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case run, scope, dueAt
    }

    /// The row of ``Kind/defectPoll``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [], route: Route(to: Topics.defectPoll, from: [.system]))
}

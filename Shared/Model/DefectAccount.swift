public import Essentials

/// Fields of a `DefectAccount` object: a person's own login in the environment's tracker of defects, without its
/// secret. In the person's own realm, with the id of their `Person`; the server writes it.
///
/// The gateway makes it when the person stores their login (`PUT /v1/credentials/compass`); `defect-submitter` says
/// whether the tracker lets it in, and so does `defect-notifier` where people are told by their own logins and it does
/// not any more.
public struct DefectAccount: Codable, Equatable, Sendable {
    /// What is known of the login.
    public enum Status: String, Codable, CaseIterable, Sendable {
        /// Nobody has tried it yet.
        case unchecked
        /// The tracker lets it in.
        case good
        /// The tracker does not let it in: commands are refused until another one is stored, and nothing is told by it.
        case refused
    }

    /// What is known of the login.
    public var status: Status
    /// The login name; `nil` with a personal access token.
    public var user: String?
    /// Why it is refused, for its person.
    public var reason: String?
    /// When it was stored.
    public var storedAt: Timestamp

    /// A login.
    public init(status: Status, user: String?, reason: String? = nil, storedAt: Timestamp) {
        self.status = status
        self.user = user
        self.reason = reason
        self.storedAt = storedAt
    }
}

extension DefectAccount: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case status, user, reason, storedAt
    }

    /// The row of ``Kind/defectAccount``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user], ids: .natural, route: Route(to: Topics.defect, from: [.user]))
}

public import Essentials

/// Fields of a `DefectAccount` object: the status of a person's own login in the environment's defect tracker, without
/// its secret. In the person's own realm, with the id of their `Person`; the server writes it.
///
/// The gateway creates it when the person stores their login (`PUT /v1/credentials/compass`). `defect-submitter`
/// reports whether the tracker accepts the login; `defect-notifier` reports a rejection if it polls with people's own
/// logins.
public struct DefectAccount: Codable, Equatable, Sendable {
    /// The status of a login.
    public enum Status: String, Codable, CaseIterable, Sendable {
        /// The login has not been used yet.
        case unchecked
        /// The tracker accepts the login.
        case good
        /// The tracker rejects the login: commands are refused and the tracker is not polled with it until another one
        /// is stored.
        case refused
    }

    /// The status of the login.
    public var status: Status
    /// The login name; `nil` with a personal access token.
    public var user: String?
    /// The reason for a rejection, for display.
    public var reason: String?
    /// The time at which the login was stored.
    public var storedAt: Timestamp

    /// Creates the fields of a login.
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

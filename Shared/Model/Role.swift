package import Essentials

/// A person's level of rights in an environment; worker by default.
public enum Role: String, Codable, CaseIterable, Sendable {
    /// A manager who can also appoint admins.
    case admin
    /// Manages teams, memberships and tasks, and can appoint managers.
    case manager
    /// Performs tasks and reports time.
    case worker

    /// Reads the role from the fields of a stored `Person` object; worker if it is absent or invalid.
    package init(of person: JSONObject) { self = person.text(of: "role").flatMap(Role.init(rawValue:)) ?? .worker }

    /// Whether the role includes the managers' permissions.
    public var isManager: Bool {
        switch self {
        case .admin, .manager: true
        case .worker: false
        }
    }
}

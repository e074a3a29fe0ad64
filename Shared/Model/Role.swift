package import Essentials

/// What a person is in their environment. A person without one is a worker.
public enum Role: String, Codable, CaseIterable, Sendable {
    /// As a manager, and says who else is an admin.
    case admin
    /// Makes teams and tasks, says who is in which team, and who else is a manager.
    case manager
    /// Does the work.
    case worker

    /// The role that the fields of a stored `Person` object give; what cannot be understood gives none.
    package init(of person: JSONObject) { self = person.text(of: "role").flatMap(Role.init(rawValue:)) ?? .worker }

    /// Whether the role comes with what is for managers.
    public var isManager: Bool {
        switch self {
        case .admin, .manager: true
        case .worker: false
        }
    }
}

/// Master data of the e-conomic sandbox, in the vendor's names. `POST /sandbox/organisation` adds it to what is there.
struct EconomicOrganisation: Codable, Sendable {
    struct Employee: Codable, Sendable {
        var number: Int
        var name: String
        var email: String?
        var isBarred: Bool?
    }

    struct Project: Codable, Sendable {
        var number: Int
        var name: String
        /// Groups projects, and takes no time itself.
        var isMainProject: Bool?
        var mainProjectNumber: Int?
        var isBarred: Bool?
        var isClosed: Bool?
    }

    struct Activity: Codable, Sendable {
        var number: Int
        var name: String
        var isAccessible: Bool?
        var hideInSearch: Bool?
    }

    /// An activity that belongs to a project. A project to which none belongs takes any.
    struct ProjectActivity: Codable, Sendable {
        var number: Int
        var projectNumber: Int
        var activityNumber: Int
        var completed: Bool?
    }

    var employees: [Employee] = []
    var projects: [Project] = []
    var activities: [Activity] = []
    var projectActivities: [ProjectActivity]?
    /// Numbers of projects that are no more.
    var deletedProjects: [Int]?
}

/// The master data by number.
struct EconomicMasterData {
    private(set) var employees: [Int: EconomicOrganisation.Employee] = [:]
    private(set) var projects: [Int: EconomicOrganisation.Project] = [:]
    private(set) var activities: [Int: EconomicOrganisation.Activity] = [:]
    private(set) var links: [Int: EconomicOrganisation.ProjectActivity] = [:]

    /// Adds master data; items with an existing number replace it.
    mutating func add(_ more: EconomicOrganisation) {
        for employee in more.employees { employees[employee.number] = employee }
        for project in more.projects { projects[project.number] = project }
        for activity in more.activities { activities[activity.number] = activity }
        for link in more.projectActivities ?? [] { links[link.number] = link }
        for number in more.deletedProjects ?? [] { projects[number] = nil }
    }
}

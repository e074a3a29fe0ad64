internal import BackendHTTP
package import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

extension EconomicBackend {
    package func reportingData(of person: BackendPerson) async throws(BackendError) -> ReportingData {
        _ = try EconomicBackend.employee(person)
        var data = try await listings.choices().data
        let last = today()
        let recent = try await records(
            of: person, from: last.adding(days: -connection.settings.suggestionDays), through: last)
        data.suggest(what: recent.entries, selectionsMax: connection.settings.suggestionsMax)
        return data
    }
}

// Entities of the Projects API, as far as they are used. The names are the vendor's own; false booleans are left out
// of an answer.

struct EconomicProject: EconomicRow {
    let number: Int
    let name: String?
    /// A group of projects; time is registered on the projects below.
    let isMainProject: Bool?
    let mainProjectNumber: Int?
    let isBarred: Bool?
    let isClosed: Bool?
}

struct EconomicActivity: EconomicRow {
    let number: Int
    let name: String?
    /// Whether time can be registered on it.
    let isAccessible: Bool?
    /// Whether employees do not see it when they register time.
    let hideInSearch: Bool?
}

/// An activity that belongs to a project. A project to which none belongs takes any activity.
struct EconomicProjectActivity: EconomicRow {
    let number: Int
    let projectNumber: Int
    let activityNumber: Int
    let completed: Bool?
}

/// All that can be reported on, as e-conomic has it.
struct EconomicProjects {
    var projects: [EconomicProject] = []
    var activities: [EconomicActivity] = []
    var links: [EconomicProjectActivity] = []
    /// Rows that exist as well.
    var unreadable: [UnreadableRecord] = []
}

/// What is reported on in e-conomic: a project and an activity, both of them always.
///
/// Everybody sees all open projects: which employee may register on which project is not in the API; e-conomic refuses
/// what a person may not do, with a message. The same goes for the dates between which an activity can be used.
enum EconomicReporting {
    private static let projects = "projects"
    private static let activities = "activities"
    static let projectNumber = "projectNumber"
    static let activityNumber = "activityNumber"

    static let vocabulary = BackendVocabulary(
        backend: "economic",
        lists: [
            BackendVocabulary.List(name: projects, root: "Project", field: projectNumber),
            BackendVocabulary.List(name: activities, root: "Activity", after: projects, field: activityNumber),
        ],
        fields: [projectNumber, activityNumber].map {
            BackendVocabulary.Field(name: $0, lengthMax: 10, isNumber: true, isRequired: true)
        },
        builtIn: TemplateDeclarations(templates: [
            TemplateDeclarations.Template(
                key: ReportingTrees.builtInKey, name: "Project time registration", type: "project",
                contexts: [
                    TemplateDeclarations.Context(name: "Project", list: projects, field: projectNumber),
                    TemplateDeclarations.Context(name: "Activity", list: activities, field: activityNumber),
                ])
        ]), settings: EconomicSettings.all)

    static let trees = ReportingTrees("e-conomic", vocabulary)

    static func data(_ found: EconomicProjects, as templates: TemplateDeclarations) -> ReportingData {
        let open = found.projects.filter { $0.isBarred != true && $0.isClosed != true }
        let projects = open.filter { $0.isMainProject != true }
        var data = trees.data(nodes(of: projects, below: open) + nodes(of: found, on: projects), as: templates)
        data.unreadable = found.unreadable
        return data
    }

    private static func projectID(_ number: Int) -> UUID { trees.id("project", String(number)) }

    /// Main projects above the projects they group. A main project has no `referenceId`, because it takes no time.
    private static func nodes(
        of projects: [EconomicProject], below open: [EconomicProject]
    ) -> [Identified<ReportingTreeNode>] {
        let used = Set(projects.compactMap(\.mainProjectNumber))
        let groups = open.filter { $0.isMainProject == true && used.contains($0.number) }
        let known = Set(groups.map(\.number))
        return groups.map {
            trees.node(projectID($0.number), in: Self.projects, referenceId: nil, name: $0.name, dependsOn: [])
        }
            + projects.map { entry in
                let group = entry.mainProjectNumber.flatMap { known.contains($0) ? projectID($0) : nil }
                return trees.node(
                    projectID(entry.number), in: Self.projects, below: group, referenceId: String(entry.number),
                    name: entry.name, dependsOn: [])
            }
    }

    /// An activity depends on the projects that it can be used on, unless it can be used on all. If rows cannot be
    /// read, one that belongs to projects may not be usable on an unreadable project.
    private static func nodes(
        of found: EconomicProjects, on projects: [EconomicProject]
    ) -> [Identified<ReportingTreeNode>] {
        let restricted = Set(found.links.map(\.projectNumber))
        let allowed = Dictionary(
            grouping: found.links.filter { $0.completed != true }, by: \.activityNumber
        ).mapValues { Set($0.map(\.projectNumber)) }
        return found.activities.filter { $0.isAccessible == true && $0.hideInSearch != true }.compactMap { entry in
            let usable = projects.filter {
                !restricted.contains($0.number) || allowed[entry.number]?.contains($0.number) == true
            }
            if usable.isEmpty && !projects.isEmpty { return nil }
            let isOnAll =
                usable.count == projects.count && (found.unreadable.isEmpty || allowed[entry.number] == nil)
            return trees.node(
                trees.id("activity", String(entry.number)), in: activities, referenceId: String(entry.number),
                name: entry.name, dependsOn: isOnAll ? [] : usable.map { projectID($0.number) })
        }
    }
}

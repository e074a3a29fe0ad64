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
        data.addSuggestions(from: recent.entries, selectionsMax: connection.settings.suggestionsMax)
        return data
    }
}

// The used members of entities of the Projects API. The names are the vendor's own; false booleans are omitted from
// responses.

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
    /// Whether the activity is hidden from employees who register time.
    let hideInSearch: Bool?
}

/// An activity that is allowed on a project. A project without such rows allows all activities.
struct EconomicProjectActivity: EconomicRow {
    let number: Int
    let projectNumber: Int
    let activityNumber: Int
    let completed: Bool?
}

/// The projects and activities of e-conomic.
struct EconomicProjects {
    var projects: [EconomicProject] = []
    var activities: [EconomicActivity] = []
    var links: [EconomicProjectActivity] = []
    /// Rows that could not be decoded.
    var unreadable: [UnreadableRecord] = []
}

/// The reporting data of e-conomic: a required project and a required activity.
///
/// All people get all open projects. The API does not expose which employee may register on which project, nor the
/// dates on which an activity can be used; e-conomic refuses such entries with a message.
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

    static func data(_ source: EconomicProjects, as templates: TemplateDeclarations) -> ReportingData {
        let open = source.projects.filter { $0.isBarred != true && $0.isClosed != true }
        let projects = open.filter { $0.isMainProject != true }
        var data = trees.data(nodes(of: projects, below: open) + nodes(of: source, on: projects), as: templates)
        data.unreadable = source.unreadable
        return data
    }

    private static func projectID(_ number: Int) -> UUID { trees.id("project", String(number)) }

    /// Returns main projects above the projects they group. A main project has no `referenceId`, because it accepts no
    /// time.
    private static func nodes(
        of projects: [EconomicProject], below open: [EconomicProject]
    ) -> [Identified<ReportingTreeNode>] {
        let used = Set(projects.compactMap(\.mainProjectNumber))
        let groups = open.filter { $0.isMainProject == true && used.contains($0.number) }
        let groupNumbers = Set(groups.map(\.number))
        return groups.map {
            trees.node(projectID($0.number), in: Self.projects, referenceId: nil, name: $0.name, dependsOn: [])
        }
            + projects.map { entry in
                let group = entry.mainProjectNumber.flatMap { groupNumbers.contains($0) ? projectID($0) : nil }
                return trees.node(
                    projectID(entry.number), in: Self.projects, below: group, referenceId: String(entry.number),
                    name: entry.name, dependsOn: [])
            }
    }

    /// Returns activities, which depend on the projects that allow them, unless all do. If rows are unreadable, a
    /// restricted activity keeps its dependencies, because an unreadable project may not allow it.
    private static func nodes(
        of source: EconomicProjects, on projects: [EconomicProject]
    ) -> [Identified<ReportingTreeNode>] {
        let restricted = Set(source.links.map(\.projectNumber))
        let allowed = Dictionary(
            grouping: source.links.filter { $0.completed != true }, by: \.activityNumber
        ).mapValues { Set($0.map(\.projectNumber)) }
        return source.activities.filter { $0.isAccessible == true && $0.hideInSearch != true }.compactMap { entry in
            let usable = projects.filter {
                !restricted.contains($0.number) || allowed[entry.number]?.contains($0.number) == true
            }
            if usable.isEmpty && !projects.isEmpty { return nil }
            let isOnAll =
                usable.count == projects.count && (source.unreadable.isEmpty || allowed[entry.number] == nil)
            return trees.node(
                trees.id("activity", String(entry.number)), in: activities, referenceId: String(entry.number),
                name: entry.name, dependsOn: isOnAll ? [] : usable.map { projectID($0.number) })
        }
    }
}

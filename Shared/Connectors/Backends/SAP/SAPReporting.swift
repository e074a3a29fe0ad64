internal import BackendHTTP
package import BackendProtocol
internal import Essentials
internal import FoundationEssentials
internal import Model

extension SAPBackend {
    package func reportingData(of person: BackendPerson) async throws(BackendError) -> ReportingData {
        guard let partner = person.reference["businessPartnerUuid"], UUID(uuidString: partner) != nil else {
            throw .refused(["\(person.email) has no business partner in SAP"])
        }
        let projects = try await connection.projects(ofBusinessPartner: partner)
        let last = today()
        let recent = try await records(
            of: person, from: last.adding(days: -connection.settings.suggestionDays), through: last)
        var data = SAPReporting.data(projects, as: templates)
        data.unreadable = projects.unreadable
        data.addSuggestions(from: recent.entries, selectionsMax: connection.settings.suggestionsMax)
        return data
    }
}

/// The reporting data of SAP: projects, as customer → project → accounting code (a WBS element), and the templates of
/// the environment.
enum SAPReporting {
    private static let customers = "customers"
    private static let projects = "projects"
    private static let elements = "wbsElements"

    /// The fields are the assignment fields of `TimeSheetDataFields`, with the service's lengths.
    static let vocabulary = BackendVocabulary(
        backend: "sap",
        lists: [
            BackendVocabulary.List(name: customers, root: "Customer"),
            BackendVocabulary.List(name: projects, root: "Project", after: customers),
            BackendVocabulary.List(name: elements, root: "Accounting code", after: projects, field: "WBSElement"),
        ],
        fields: [
            ("WBSElement", 24), ("InternalOrder", 12), ("ReceiverCostCenter", 10), ("SenderCostCenter", 10),
            ("ActivityType", 6), ("TimeSheetTaskType", 4), ("TimeSheetTaskLevel", 8), ("TimeSheetTaskComponent", 8),
            ("TimeSheetOvertimeCategory", 4), ("WorkItem", 10), ("BillingControlCategory", 8),
            ("TimeSheetWrkLocCode", 4),
        ].map { BackendVocabulary.Field(name: $0.0, lengthMax: $0.1) },
        builtIn: TemplateDeclarations(templates: [
            TemplateDeclarations.Template(
                key: ReportingTrees.builtInKey, name: "Project time registration", type: "project",
                contexts: [
                    TemplateDeclarations.Context(name: "Customer", list: customers),
                    TemplateDeclarations.Context(name: "Project", list: projects),
                    TemplateDeclarations.Context(name: "Accounting code", list: elements, field: "WBSElement"),
                ])
        ]), settings: SAPSettings.all)

    private static let trees = ReportingTrees("sap-s4hana", vocabulary)

    static func data(_ projects: SAPProjects, as templates: TemplateDeclarations) -> ReportingData {
        trees.data(nodes(of: projects), as: templates)
    }

    private static func nodes(of projects: SAPProjects) -> [Identified<ReportingTreeNode>] {
        let customers = projects.customers.sorted { $0.BusinessPartner < $1.BusinessPartner }
        let readable = Set(customers.map { $0.BusinessPartnerUUID.lowercased() })
        var nodes = customers.map {
            trees.node(
                trees.id("customer", $0.BusinessPartnerUUID), in: Self.customers, referenceId: $0.BusinessPartner,
                name: $0.BusinessPartnerFullName, dependsOn: [])
        }
        // Every project is selected through a customer.
        let internalID = trees.id("customer", "internal")
        var hasInternal = false
        for entry in projects.projects.sorted(by: { $0.Project < $1.Project }) {
            let owner = entry.CustomerUUID.flatMap {
                readable.contains($0.lowercased()) ? trees.id("customer", $0) : nil
            }
            if owner == nil && !hasInternal {
                hasInternal = true
                nodes.append(
                    trees.node(internalID, in: Self.customers, referenceId: nil, name: "Internal", dependsOn: []))
            }
            nodes.append(
                trees.node(
                    trees.id("project", entry.ProjectUUID), in: Self.projects, referenceId: entry.Project,
                    name: entry.ProjectDescription, dependsOn: [owner ?? internalID]))
        }
        nodes += projects.elements.sorted { $0.ProjectElement < $1.ProjectElement }.map {
            trees.node(
                trees.id("element", $0.ProjectElementUUID), in: elements, referenceId: $0.ProjectElement,
                name: $0.ProjectElementDescription, dependsOn: [trees.id("project", $0.ProjectUUID)])
        }
        return nodes
    }
}

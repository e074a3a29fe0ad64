internal import FoundationEssentials
internal import Model

extension SAPBackend {
    package func reportingData(of person: BackendPerson) async throws(BackendError) -> ReportingData {
        guard let partner = person.reference["businessPartnerUuid"], UUID(uuidString: partner) != nil else {
            throw .refused(["\(person.email) has no business partner in SAP"])
        }
        let projects = try await connection.projects(ofBusinessPartner: partner)
        let last = today()
        let recent = try await entries(
            of: person, from: last.adding(days: -connection.settings.suggestionDays), through: last)
        return SAPReporting.data(
            projects, recent: recent, suggestionsMax: connection.settings.suggestionsMax)
    }
}

/// Trees, contexts and the template made of projects: customer → project → accounting code (a WBS element).
enum SAPReporting {
    static let customer = "Customer"
    static let project = "Project"
    static let accountingCode = "Accounting code"

    /// How many suggestions are shown at first.
    static let suggestionsShown = 5

    /// Ids are the same in every environment and every run: they are made from the system's ids in this namespace.
    private static let namespace = UUID(name: "fieldpost/sap-s4hana", in: UUID(uuid: noBytes))
    private static let noBytes: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

    static func id(_ kind: String, _ name: String) -> UUID { UUID(name: kind + "/" + name.lowercased(), in: namespace) }

    /// - Parameter recent: The person's records, from which the suggestions come, the latest day first.
    static func data(_ projects: SAPProjects, recent: [BackendEntry], suggestionsMax: Int) -> ReportingData {
        let nodes = nodes(of: projects)
        var data = ReportingData(nodes: nodes, contexts: [], templates: [])
        data.contexts = [customer, project, accountingCode].map { name in
            Identified(
                id: id("context", name),
                fields: ReportingContext(
                    name: name, required: true,
                    sections: [ReportingContext.Section(name: "All", rootNode: id("root", name))]))
        }
        addSuggestions(to: &data, recent: recent, suggestionsMax: suggestionsMax)
        let template = ReportingTemplate(
            name: "Project time registration", type: "project", reportingContexts: data.contexts.map(\.id))
        data.templates = [Identified(id: id("template", "project"), fields: template)]
        return data
    }

    private static func nodes(of projects: SAPProjects) -> [Identified<ReportingTreeNode>] {
        var nodes = [customer, project, accountingCode].map {
            Identified(id: id("root", $0), fields: ReportingTreeNode(name: $0))
        }
        let customers = projects.customers.sorted { $0.BusinessPartner < $1.BusinessPartner }
        let known = Set(customers.map { $0.BusinessPartnerUUID.lowercased() })
        nodes += customers.map {
            node(
                id("customer", $0.BusinessPartnerUUID), in: customer, referenceId: $0.BusinessPartner,
                name: $0.BusinessPartnerFullName, dependsOn: nil)
        }
        // Every project needs a customer to be reached through.
        let internalID = id("customer", "internal")
        var hasInternal = false
        for entry in projects.projects.sorted(by: { $0.Project < $1.Project }) {
            let owner = entry.CustomerUUID.flatMap { known.contains($0.lowercased()) ? id("customer", $0) : nil }
            if owner == nil && !hasInternal {
                hasInternal = true
                nodes.append(node(internalID, in: customer, referenceId: nil, name: "Internal", dependsOn: nil))
            }
            nodes.append(
                node(
                    id("project", entry.ProjectUUID), in: project, referenceId: entry.Project,
                    name: entry.ProjectDescription, dependsOn: owner ?? internalID))
        }
        nodes += projects.elements.sorted { $0.ProjectElement < $1.ProjectElement }.map {
            node(
                id("element", $0.ProjectElementUUID), in: accountingCode, referenceId: $0.ProjectElement,
                name: $0.ProjectElementDescription, dependsOn: id("project", $0.ProjectUUID))
        }
        return nodes
    }

    private static func node(
        _ id: UUID, in context: String, referenceId: String?, name: String?, dependsOn dependency: UUID?
    ) -> Identified<ReportingTreeNode> {
        let name = name.flatMap { $0.isEmpty ? nil : $0 } ?? referenceId ?? id.text
        return Identified(
            id: id,
            fields: ReportingTreeNode(
                referenceId: referenceId, name: name, title: name, parent: self.id("root", context),
                hasDependencies: dependency != nil, dependencies: dependency.map { [$0] } ?? []))
    }

    /// Puts the nodes this person used last before all others.
    private static func addSuggestions(to data: inout ReportingData, recent: [BackendEntry], suggestionsMax: Int) {
        var seen: [[String: String]] = []
        for entry in recent.sorted(by: { ($0.day, $0.id) > ($1.day, $1.id) }) where !seen.contains(entry.references) {
            seen.append(entry.references)
        }
        var items: [UUID: [UUID]] = [:]
        for selection in seen.prefix(suggestionsMax).flatMap({ data.selections(for: $0) })
        where items[selection.context]?.contains(selection.node) != true {
            items[selection.context, default: []].append(selection.node)
        }
        for index in data.contexts.indices {
            guard let used = items[data.contexts[index].id] else { continue }
            data.contexts[index].fields.sections.insert(
                ReportingContext.Section(name: "Suggestions", showCount: suggestionsShown, items: used), at: 0)
        }
    }
}

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

    private static let trees = ReportingTrees(of: "sap-s4hana", contexts: [customer, project, accountingCode])

    /// - Parameter recent: The person's records, from which the suggestions come, the latest day first.
    static func data(_ projects: SAPProjects, recent: [BackendEntry], suggestionsMax: Int) -> ReportingData {
        var data = trees.data(nodes(of: projects))
        data.suggest(what: recent, selectionsMax: suggestionsMax)
        return data
    }

    private static func nodes(of projects: SAPProjects) -> [Identified<ReportingTreeNode>] {
        let customers = projects.customers.sorted { $0.BusinessPartner < $1.BusinessPartner }
        let known = Set(customers.map { $0.BusinessPartnerUUID.lowercased() })
        var nodes = customers.map {
            trees.node(
                trees.id("customer", $0.BusinessPartnerUUID), in: customer, referenceId: $0.BusinessPartner,
                name: $0.BusinessPartnerFullName, dependsOn: [])
        }
        // Every project needs a customer to be reached through.
        let internalID = trees.id("customer", "internal")
        var hasInternal = false
        for entry in projects.projects.sorted(by: { $0.Project < $1.Project }) {
            let owner = entry.CustomerUUID.flatMap { known.contains($0.lowercased()) ? trees.id("customer", $0) : nil }
            if owner == nil && !hasInternal {
                hasInternal = true
                nodes.append(trees.node(internalID, in: customer, referenceId: nil, name: "Internal", dependsOn: []))
            }
            nodes.append(
                trees.node(
                    trees.id("project", entry.ProjectUUID), in: project, referenceId: entry.Project,
                    name: entry.ProjectDescription, dependsOn: [owner ?? internalID]))
        }
        nodes += projects.elements.sorted { $0.ProjectElement < $1.ProjectElement }.map {
            trees.node(
                trees.id("element", $0.ProjectElementUUID), in: accountingCode, referenceId: $0.ProjectElement,
                name: $0.ProjectElementDescription, dependsOn: [trees.id("project", $0.ProjectUUID)])
        }
        return nodes
    }
}

// Entities of API_ENTERPRISE_PROJECT_SRV;v=0002 and API_BUSINESS_PARTNER, as far as they are used. The names are the
// services' own.

internal import BackendHTTP
import BackendProtocol

struct SAPTeamMember: SAPRow {
    let ProjectUUID: String

    static let idMembers = ["ProjectUUID"]
    var key: String { ProjectUUID }
}

struct SAPBlockFunctions: Decodable {
    let EntProjTimeRecgIsBlkd: Bool?
}

struct SAPProject: SAPRow {
    let ProjectUUID: String
    let Project: String
    let ProjectDescription: String?
    let CustomerUUID: String?
    let ProcessingStatus: String?
    let to_EntProjBlkFunc: SAPBlockFunctions?

    static let idMembers = ["ProjectUUID"]
    var key: String { ProjectUUID }
}

struct SAPProjectElement: SAPRow {
    let ProjectElementUUID: String
    let ProjectUUID: String
    let ProjectElement: String
    let ProjectElementDescription: String?
    let to_EntProjElmntBlkFunc: SAPBlockFunctions?

    static let idMembers = ["ProjectElementUUID"]
    var key: String { ProjectElementUUID }
}

struct SAPBusinessPartner: SAPRow {
    let BusinessPartner: String
    let BusinessPartnerUUID: String
    let BusinessPartnerFullName: String?

    static let idMembers = ["BusinessPartnerUUID"]
    var key: String { BusinessPartnerUUID }
}

/// All that a person may report on, as SAP has it.
struct SAPProjects {
    var projects: [SAPProject] = []
    var elements: [SAPProjectElement] = []
    var customers: [SAPBusinessPartner] = []
    /// What else there is.
    var unreadable: [UnreadableRecord] = []

    /// Removes the projects of customers that could not be read, and their elements: they would count as internal.
    mutating func removeProjectsWithoutCustomer() {
        let known = Set(customers.map { $0.BusinessPartnerUUID.lowercased() })
        projects.removeAll { $0.CustomerUUID.map { !known.contains($0.lowercased()) } ?? false }
        let left = Set(projects.map(\.ProjectUUID))
        elements.removeAll { !left.contains($0.ProjectUUID) }
    }
}

extension SAPConnection {
    /// Ids in one filter, which bounds the length of its address.
    private static let idsPerFilterMax = 25

    /// The projects on whose team the business partner is, that take time, with their elements and customers.
    func projects(ofBusinessPartner id: String) async throws(BackendError) -> SAPProjects {
        let memberships = try await rows(
            SAPConnection.project + "/A_EnterpriseProjectTeamMember",
            filter: "BusinessPartnerUUID eq guid'\(id)'", as: SAPTeamMember.self)
        let ids = Set(memberships.rows.map(\.ProjectUUID))
        var found = SAPProjects()
        found.unreadable = memberships.unreadable
        found.projects = try await rows(
            SAPConnection.project + "/A_EnterpriseProject", where: "ProjectUUID", in: ids,
            expand: "to_EntProjBlkFunc", as: SAPProject.self, &found.unreadable
        ).filter {
            $0.to_EntProjBlkFunc?.EntProjTimeRecgIsBlkd != true
                && !settings.closedProjectStatuses.contains($0.ProcessingStatus ?? "")
        }
        found.elements = try await rows(
            SAPConnection.project + "/A_EnterpriseProjectElement", where: "ProjectUUID",
            in: Set(found.projects.map(\.ProjectUUID)), expand: "to_EntProjElmntBlkFunc", as: SAPProjectElement.self,
            &found.unreadable
        ).filter { $0.to_EntProjElmntBlkFunc?.EntProjTimeRecgIsBlkd != true }
        let unreadableCount = found.unreadable.count
        found.customers = try await rows(
            SAPConnection.businessPartner + "/A_BusinessPartner", where: "BusinessPartnerUUID",
            in: Set(found.projects.compactMap(\.CustomerUUID)), expand: nil, as: SAPBusinessPartner.self,
            &found.unreadable)
        if found.unreadable.count > unreadableCount { found.removeProjectsWithoutCustomer() }
        return found
    }

    private func rows<Row: SAPRow>(
        _ path: String, where field: String, in ids: Set<String>, expand: String?, as _: Row.Type,
        _ unreadable: inout [UnreadableRecord]
    ) async throws(BackendError) -> [Row] {
        var found: [Row] = []
        var rest = ids.sorted()[...]
        while !rest.isEmpty {
            let filter = rest.prefix(SAPConnection.idsPerFilterMax).map { "\(field) eq guid'\($0)'" }
            rest = rest.dropFirst(SAPConnection.idsPerFilterMax)
            let part = try await rows(path, filter: filter.joined(separator: " or "), expand: expand, as: Row.self)
            found += part.rows
            unreadable += part.unreadable
        }
        return found
    }
}

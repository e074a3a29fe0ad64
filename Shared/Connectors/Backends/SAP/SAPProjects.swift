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

/// The projects, elements and customers that a person may report on.
struct SAPProjects {
    var projects: [SAPProject] = []
    var elements: [SAPProjectElement] = []
    var customers: [SAPBusinessPartner] = []
    /// Rows that could not be decoded.
    var unreadable: [UnreadableRecord] = []

    /// Removes projects with an unreadable customer, which would otherwise count as internal, and their elements.
    mutating func removeProjectsWithoutCustomer() {
        let readable = Set(customers.map { $0.BusinessPartnerUUID.lowercased() })
        projects.removeAll { $0.CustomerUUID.map { !readable.contains($0.lowercased()) } ?? false }
        let remaining = Set(projects.map(\.ProjectUUID))
        elements.removeAll { !remaining.contains($0.ProjectUUID) }
    }
}

extension SAPConnection {
    /// Maximum number of ids in a filter, which limits the length of the URL.
    private static let idsPerFilterMax = 25

    /// Reads the projects with the business partner in their team that accept time, with their elements and customers.
    func projects(ofBusinessPartner id: String) async throws(BackendError) -> SAPProjects {
        let memberships = try await rows(
            SAPConnection.project + "/A_EnterpriseProjectTeamMember",
            filter: "BusinessPartnerUUID eq guid'\(id)'", as: SAPTeamMember.self)
        let ids = Set(memberships.rows.map(\.ProjectUUID))
        var result = SAPProjects()
        result.unreadable = memberships.unreadable
        result.projects = try await rows(
            SAPConnection.project + "/A_EnterpriseProject", where: "ProjectUUID", in: ids,
            expand: "to_EntProjBlkFunc", as: SAPProject.self, &result.unreadable
        ).filter {
            $0.to_EntProjBlkFunc?.EntProjTimeRecgIsBlkd != true
                && !settings.closedProjectStatuses.contains($0.ProcessingStatus ?? "")
        }
        result.elements = try await rows(
            SAPConnection.project + "/A_EnterpriseProjectElement", where: "ProjectUUID",
            in: Set(result.projects.map(\.ProjectUUID)), expand: "to_EntProjElmntBlkFunc", as: SAPProjectElement.self,
            &result.unreadable
        ).filter { $0.to_EntProjElmntBlkFunc?.EntProjTimeRecgIsBlkd != true }
        let unreadableCount = result.unreadable.count
        result.customers = try await rows(
            SAPConnection.businessPartner + "/A_BusinessPartner", where: "BusinessPartnerUUID",
            in: Set(result.projects.compactMap(\.CustomerUUID)), expand: nil, as: SAPBusinessPartner.self,
            &result.unreadable)
        if result.unreadable.count > unreadableCount { result.removeProjectsWithoutCustomer() }
        return result
    }

    private func rows<Row: SAPRow>(
        _ path: String, where field: String, in ids: Set<String>, expand: String?, as _: Row.Type,
        _ unreadable: inout [UnreadableRecord]
    ) async throws(BackendError) -> [Row] {
        var all: [Row] = []
        var remaining = ids.sorted()[...]
        while !remaining.isEmpty {
            let filter = remaining.prefix(SAPConnection.idsPerFilterMax).map { "\(field) eq guid'\($0)'" }
            remaining = remaining.dropFirst(SAPConnection.idsPerFilterMax)
            let batch = try await rows(path, filter: filter.joined(separator: " or "), expand: expand, as: Row.self)
            all += batch.rows
            unreadable += batch.unreadable
        }
        return all
    }
}

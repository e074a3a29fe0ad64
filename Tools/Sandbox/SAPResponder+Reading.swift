import Essentials
import Hummingbird
import Model

extension SAPResponder {
    /// The query options of OData V2 that are looked at. `$orderby` and `$inlinecount` are ignored (SAP KBA 3744148).
    private struct Query {
        var filter: ODataFilter?
        var top = 5000
        var skip = 0
        var select: Set<String> = []
        var expand: Set<String> = []

        init(_ text: String) throws {
            for part in text.split(separator: "&") {
                let pair = part.split(separator: "=", maxSplits: 1)
                guard pair.count == 2, let value = String(pair[1]).removingURLPercentEncoding() else { continue }
                switch String(pair[0]).removingURLPercentEncoding() {
                case "$filter": filter = try ODataFilter(value)
                case "$top": top = max(0, Int(value) ?? 0)
                case "$skip": skip = max(0, Int(value) ?? 0)
                case "$select": select = Set(value.split(separator: ",").map(String.init))
                case "$expand": expand = Set(value.split(separator: ",").map(String.init))
                default: break
                }
            }
        }
    }

    func read(_ path: String, _ request: Request) -> Response {
        guard let query = try? Query(request.uri.query ?? "") else {
            return .json(.badRequest, SAPEntities.error(["Invalid system query option specified"]))
        }
        switch path {
        case SAPPath.timeSheet + "/TimeSheetEntryCollection":
            system.count("listings")
            if query.filter?.required("PersonWorkAgreementExternalID") == nil { system.count("companyListings") }
            let rowsMax = system.withDials { $0.switches.rowsMax }
            let top = rowsMax > 0 ? min(query.top, rowsMax) : query.top
            let records = system.records(query.filter, skip: query.skip, top: top)
            let person = system.switches.faults.unreadableRowsOf
            system.count("unreadableRows", records.count { $0.person == person })
            return rows(records.map { SAPEntities.timeSheetEntry($0) }, query) { index, row in
                row.unreadable(
                    if: records[index].person == person, id: "TimeSheetRecord", number: records[index].number)
            }
        case SAPPath.project + "/A_EnterpriseProjectTeamMember":
            return rows(page(teamMembers(query.filter), query).map(SAPEntities.teamMember), query)
        case SAPPath.project + "/A_EnterpriseProject":
            let projects = page(projects(query.filter), query)
            return rows(projects.map { SAPEntities.project($0, expand: query.expand) }, query)
        case SAPPath.project + "/A_EnterpriseProjectElement":
            let elements = page(elements(query.filter), query)
            return rows(elements.map { SAPEntities.element($0.1, of: $0.0, expand: query.expand) }, query)
        case SAPPath.businessPartner + "/A_BusinessPartner":
            let customers = Array(page(customers(query.filter), query))
            let unreadable = system.switches.faults.unreadableChoice
            return rows(customers.map(SAPEntities.businessPartner), query) { index, row in
                // The last variant: the row is a text.
                row.unreadable(
                    if: customers[index].businessPartner == unreadable, id: "BusinessPartnerUUID",
                    number: UnreadableRow.variantCount - 1)
            }
        case SAPPath.timeSheet, SAPPath.timeSheet + "/":
            return .json(.ok, .object([("d", .object([("EntitySets", .array(["TimeSheetEntryCollection"]))]))]))
        default:
            return entry(path)
        }
    }

    /// `TimeSheetEntryCollection(PersonWorkAgreementExternalID='…',CompanyCode='…',TimeSheetRecord='…')`
    private func entry(_ path: String) -> Response {
        let prefix = SAPPath.timeSheet + "/TimeSheetEntryCollection("
        guard path.hasPrefix(prefix), path.hasSuffix(")") else { return .notFound }
        system.count("reads")
        var keys: [String: String] = [:]
        for part in path.dropFirst(prefix.count).dropLast().split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, pair[1].count >= 2 else { return .notFound }
            keys[String(pair[0])] = pair[1].dropFirst().dropLast().split(separator: "''").joined(separator: "'")
        }
        guard let record = keys["TimeSheetRecord"].flatMap({ Int($0) }).flatMap({ system.record($0) }),
            record.person == keys["PersonWorkAgreementExternalID"], record.companyCode == keys["CompanyCode"]
        else { return .notFound }
        return .json(.ok, .object([("d", .object(SAPEntities.timeSheetEntry(record)))]))
    }

    private func rows(
        _ entities: [[(String, JSONText)]], _ query: Query,
        change: (_ index: Int, _ row: JSONText) -> JSONText = { _, row in row }
    ) -> Response {
        let results = entities.enumerated().map { index, fields in
            change(
                index,
                .object(
                    query.select.isEmpty
                        ? fields : fields.filter { $0.0 == "__metadata" || query.select.contains($0.0) }))
        }
        return .json(.ok, .object([("d", .object([("results", .array(results))]))]))
    }

    private func page<Entity>(_ entities: [Entity], _ query: Query) -> ArraySlice<Entity> {
        entities.dropFirst(query.skip).prefix(query.top)
    }

    private func teamMembers(_ filter: ODataFilter?) -> [SAPMasterData.TeamMember] {
        system.count("teamMemberListings")
        return system.withMaster { master in
            let members =
                filter?.required("BusinessPartnerUUID").map { master.membersByPartner[$0] ?? [] }
                ?? Array(master.membersByPartner.values.joined())
            return members.filter { member in
                filter?.matches {
                    switch $0 {
                    case "BusinessPartnerUUID": member.businessPartner.lowercased()
                    case "ProjectUUID": member.project.lowercased()
                    case "TeamMemberUUID": member.id.lowercased()
                    default: nil
                    }
                } ?? true
            }
        }
    }

    private func projects(_ filter: ODataFilter?) -> [SAPOrganisation.Project] {
        system.count("projectListings")
        return system.withMaster { master in
            named(by: filter, master).filter { project in
                filter?.matches {
                    switch $0 {
                    case "ProjectUUID": project.projectUuid.lowercased()
                    case "Project": project.project
                    case "CustomerUUID": project.customerUuid?.lowercased()
                    case "ProcessingStatus": project.processingStatus
                    default: nil
                    }
                } ?? true
            }
        }
    }

    private func elements(_ filter: ODataFilter?) -> [(SAPOrganisation.Project, SAPOrganisation.Element)] {
        system.count("elementListings")
        return system.withMaster { master in
            named(by: filter, master).flatMap { project in
                project.elements.filter { element in
                    filter?.matches {
                        switch $0 {
                        case "ProjectUUID": project.projectUuid.lowercased()
                        case "ProjectElementUUID": element.projectElementUuid.lowercased()
                        case "ProjectElement": element.projectElement
                        default: nil
                        }
                    } ?? true
                }.map { (project, $0) }
            }
        }
    }

    /// The projects whose ids the filter names, or all.
    private func named(by filter: ODataFilter?, _ master: SAPMasterData) -> [SAPOrganisation.Project] {
        let ids = filter?.values(of: "ProjectUUID") ?? []
        guard !ids.isEmpty else { return master.organisation.projects }
        return ids.compactMap { master.projectsByID[$0] }.sorted().map { master.organisation.projects[$0] }
    }

    private func customers(_ filter: ODataFilter?) -> [SAPOrganisation.Customer] {
        system.count("businessPartnerListings")
        return system.withMaster { master in
            master.organisation.customers.filter { customer in
                filter?.matches {
                    switch $0 {
                    case "BusinessPartnerUUID": customer.businessPartnerUuid.lowercased()
                    case "BusinessPartner": customer.businessPartner
                    case "BusinessPartnerFullName": customer.name
                    default: nil
                    }
                } ?? true
            }
        }
    }
}

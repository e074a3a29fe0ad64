import Hummingbird

extension SAPEmulator {
    /// The query options of OData V2 that are looked at. `$orderby` and `$inlinecount` are ignored (SAP KBA 3744148).
    private struct Query {
        var filter: Filter?
        var top = 5000
        var skip = 0
        var select: Set<String> = []
        var expand: Set<String> = []

        init(_ request: Request) throws {
            for (name, value) in request.parameters {
                switch name {
                case "$filter": filter = try Filter(odata: value)
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
        guard let query = try? Query(request) else {
            return Self.failure(.badRequest, "Invalid system query option specified")
        }
        switch path {
        case SAPPath.timeSheet + "/TimeSheetEntryCollection":
            system.count("listings")
            if query.filter?.required("PersonWorkAgreementExternalID") == nil { system.count("companyListings") }
            let (records, person) = system.withState { state in
                let rowsMax = state.switches.rowsMax
                let top = rowsMax > 0 ? min(query.top, rowsMax) : query.top
                let records = state.page(query.filter, skip: query.skip, top: top)
                return (records, state.switches.faults.unreadableRowsOf)
            }
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
            return .json(.ok, ["d": ["EntitySets": ["TimeSheetEntryCollection"]]])
        default:
            return entry(path)
        }
    }

    /// `TimeSheetEntryCollection(PersonWorkAgreementExternalID='…',CompanyCode='…',TimeSheetRecord='…')`
    private func entry(_ path: String) -> Response {
        let prefix = SAPPath.timeSheet + "/TimeSheetEntryCollection("
        guard path.hasPrefix(prefix), path.hasSuffix(")") else { return Self.notFound }
        system.count("reads")
        var keys: [String: String] = [:]
        for part in path.dropFirst(prefix.count).dropLast().split(separator: ",") {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, pair[1].count >= 2 else { return Self.notFound }
            keys[String(pair[0])] = pair[1].dropFirst().dropLast().split(separator: "''").joined(separator: "'")
        }
        let number = keys["TimeSheetRecord"].flatMap { Int($0) } ?? 0
        guard let record = system.withState({ $0.records[number] }),
            record.person == keys["PersonWorkAgreementExternalID"], record.companyCode == keys["CompanyCode"]
        else { return Self.notFound }
        return .json(.ok, ["d": SAPEntities.timeSheetEntry(record)])
    }

    private func rows(
        _ entities: [JSON], _ query: Query, change: (_ index: Int, _ row: JSON) -> JSON = { _, row in row }
    ) -> Response {
        let results = entities.enumerated().map { index, entity in
            change(
                index,
                query.select.isEmpty
                    ? entity : entity.keeping { $0 == "__metadata" || query.select.contains($0) })
        }
        return .json(.ok, ["d": ["results": .array(results)]])
    }

    private func page<Entity>(_ entities: [Entity], _ query: Query) -> ArraySlice<Entity> {
        entities.dropFirst(query.skip).prefix(query.top)
    }

    private func teamMembers(_ filter: Filter?) -> [SAPMasterData.TeamMember] {
        system.count("teamMemberListings")
        let master = system.withState { $0.master }
        let members =
            filter?.required("BusinessPartnerUUID").map { master.membersByPartner[$0] ?? [] }
            ?? Array(master.membersByPartner.values.joined())
        return members.filter { member in
            passes(
                filter,
                [
                    "BusinessPartnerUUID": member.businessPartner, "ProjectUUID": member.project,
                    "TeamMemberUUID": member.id,
                ])
        }
    }

    private func projects(_ filter: Filter?) -> [SAPOrganisation.Project] {
        system.count("projectListings")
        return named(by: filter).filter { project in
            passes(
                filter,
                [
                    "ProjectUUID": project.projectUuid, "Project": project.project,
                    "CustomerUUID": project.customerUuid, "ProcessingStatus": project.processingStatus,
                ])
        }
    }

    private func elements(_ filter: Filter?) -> [(SAPOrganisation.Project, SAPOrganisation.Element)] {
        system.count("elementListings")
        let all = named(by: filter).flatMap { project in project.elements.map { (project, $0) } }
        return all.filter { project, element in
            passes(
                filter,
                [
                    "ProjectUUID": project.projectUuid, "ProjectElementUUID": element.projectElementUuid,
                    "ProjectElement": element.projectElement,
                ])
        }
    }

    private func customers(_ filter: Filter?) -> [SAPOrganisation.Customer] {
        system.count("businessPartnerListings")
        return system.withState { $0.master.organisation.customers }.filter { customer in
            passes(
                filter,
                [
                    "BusinessPartnerUUID": customer.businessPartnerUuid, "BusinessPartner": customer.businessPartner,
                    "BusinessPartnerFullName": customer.name,
                ])
        }
    }

    /// The projects whose ids the filter names, or all.
    private func named(by filter: Filter?) -> [SAPOrganisation.Project] {
        let master = system.withState { $0.master }
        let ids = filter?.values(of: "ProjectUUID") ?? []
        guard !ids.isEmpty else { return master.organisation.projects }
        return ids.compactMap { master.projectsByID[$0] }.sorted().map { master.organisation.projects[$0] }
    }

    /// Whether an entity passes a filter, in which ids have small letters.
    private func passes(_ filter: Filter?, _ fields: [String: String?]) -> Bool {
        filter?.matches { name in
            guard let value = fields[name] ?? nil else { return nil }
            return .text(name.hasSuffix("UUID") ? value.lowercased() : value)
        } ?? true
    }
}

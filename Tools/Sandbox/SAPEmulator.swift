import Essentials
import Foundation
import HTTPServer
import HTTPTypes
import Hummingbird
import Model
import NIOCore

/// An emulator of SAP S/4HANA: time sheets, projects and business partners, after the documented behaviour.
///
/// It has no router, since OData keys are part of the last path segment.
struct SAPEmulator: Emulator {
    let system: SAPSystem
    /// The `Authorization` that is accepted.
    private let credentials: String

    /// - Parameter state: The file that keeps the state over a restart; `nil` keeps it in memory only.
    init(state: String? = nil, user: String = "FIELDPOST", password: String = "sandbox") throws {
        system = try SAPSystem(journalPath: state)
        credentials = "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    func serve(_ request: Request, _ context: EdgeContext) async throws -> Response {
        system.count("requests")
        guard request.headers[.authorization] == credentials else {
            system.count("unauthorized")
            var response = Self.failure(.unauthorized, "Logon failed")
            response.headers[.wwwAuthenticate] = "Basic realm=\"SAP NetWeaver Application Server\""
            return response
        }
        if let failure = try await injectedFailure(of: request) { return failure }
        var response = try await authorized(request, context)
        addToken(to: &response, for: request)
        return response
    }

    static func failure(_ status: HTTPResponse.Status, _ message: String) -> Response {
        .json(status, SAPEntities.error([message]))
    }

    private func authorized(_ request: Request, _ context: EdgeContext) async throws -> Response {
        guard let path = request.uri.path.removingPercentEncoding else { return Self.notFound }
        switch request.method {
        case .get, .head:
            return read(path, request)
        case .post where path == SAPPath.timeSheet + "/TimeSheetEntryCollection":
            guard let token = token(of: request), request.headers[.csrfToken] == token else {
                system.count("csrfRefused")
                return Response(
                    status: .forbidden, headers: [.csrfToken: "Required", .contentType: "text/plain"],
                    body: ResponseBody(byteBuffer: ByteBuffer(string: "CSRF token validation failed")))
            }
            return try await post(try await request.data(), context)
        default:
            return Self.failure(.methodNotAllowed, "Method not allowed")
        }
    }

    // MARK: Sessions

    /// The token of the session that the request's cookie names.
    private func token(of request: Request) -> String? {
        request.cookies[SAPSessions.cookie].flatMap { cookie in system.withState { $0.sessions[cookie.value] } }
    }

    private func addToken(to response: inout Response, for request: Request) {
        guard request.method == .get, request.headers[.csrfToken]?.lowercased() == "fetch" else { return }
        system.count("tokenFetches")
        if let token = token(of: request) {
            response.headers[.csrfToken] = token
            return
        }
        let (session, token) = system.withState { $0.sessions.start() }
        response.headers[.csrfToken] = token
        response.headers[.setCookie] = "\(SAPSessions.cookie)=\(session); path=/; HttpOnly"
    }

    // MARK: Reading

    /// The query options of OData V2 that are looked at. `$orderby` and `$inlinecount` are ignored (SAP KBA 3744148).
    private struct Query {
        var filter: Filter?
        var top = 5000
        var skip = 0
        var select: Set<String> = []
        var expand: Set<String> = []

        init(_ request: Request) throws {
            for parameter in request.parameters {
                let value = parameter.value
                switch parameter.name {
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
            system.count("teamMemberListings")
            return rows(page(teamMembers(query.filter).map(SAPEntities.teamMember), query), query)
        case SAPPath.project + "/A_EnterpriseProject":
            system.count("projectListings")
            let projects = projects(query.filter).map { SAPEntities.project($0, expand: query.expand) }
            return rows(page(projects, query), query)
        case SAPPath.project + "/A_EnterpriseProjectElement":
            system.count("elementListings")
            let elements = projects(query.filter).flatMap { project in
                project.elements.map { SAPEntities.element($0, of: project, expand: query.expand) }
            }
            return rows(page(elements, query), query)
        case SAPPath.businessPartner + "/A_BusinessPartner":
            system.count("businessPartnerListings")
            let (all, unreadable) = system.withState { state in
                (state.master.organisation.customers, state.switches.faults.unreadableChoice)
            }
            let customers = page(all.map(SAPEntities.businessPartner), query)
            return rows(customers, query) { index, row in
                // The last variant: the row is a text.
                row.unreadable(
                    if: customers[index]["BusinessPartner"] == unreadable, id: "BusinessPartnerUUID",
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

    /// The entities that pass the query's filter, which compares texts, and ids in small letters.
    private func page(_ entities: [JSON], _ query: Query) -> [JSON] {
        let passing = entities.filter { entity in
            query.filter?.matches { name in
                entity[name].map { .text(name.hasSuffix("UUID") ? $0.lowercased() : $0) }
            } ?? true
        }
        return Array(passing.dropFirst(query.skip).prefix(query.top))
    }

    private func teamMembers(_ filter: Filter?) -> [SAPMasterData.TeamMember] {
        let members = system.withState { $0.master.membersByPartner }
        guard let partner = filter?.required("BusinessPartnerUUID") else { return Array(members.values.joined()) }
        return members[partner] ?? []
    }

    /// The projects whose ids the filter names, or all.
    private func projects(_ filter: Filter?) -> [SAPOrganisation.Project] {
        let master = system.withState { $0.master }
        let ids = filter?.values(of: "ProjectUUID") ?? []
        guard !ids.isEmpty else { return master.organisation.projects }
        return ids.compactMap { master.projectsByID[$0] }.sorted().map { master.organisation.projects[$0] }
    }

    // MARK: Writing

    private func post(_ body: Data, _ context: EdgeContext) async throws -> Response {
        guard let entry = try? JSONDecoder().decode(SAPEntryRequest.self, from: body) else {
            return Self.failure(.badRequest, "Error while parsing the request body")
        }
        guard let operation = entry.TimeSheetOperation, !operation.isEmpty else {
            system.count("withoutOperation")
            return .json(.created, ["d": SAPEntities.echo(entry)])
        }
        system.count(operation == "C" ? "creates" : operation == "U" ? "updates" : "deletes")
        return try await write(context) { [system] isTrial in
            let record = try system.withState { try $0.execute(entry, operation: operation, isTrial: isTrial) }
            return .json(.created, ["d": SAPEntities.timeSheetEntry(record, operation: operation)])
        }
    }

    // MARK: Control

    func control(_ request: Request) async throws -> Response? {
        switch (request.method, request.uri.path) {
        case (.post, "/sandbox/approvals"):
            return try await change(request) { (approval: Approval) in
                guard let number = Int(approval.record), let code = Int(approval.status),
                    let status = SAPRecord.Status(rawValue: code), (approval.reason ?? "").count <= 4,
                    system.withState({ $0.approve(number, status, reason: approval.reason) })
                else { throw EmulatorError("record \(approval.record) has no such status transition") }
                return ["record": .string(approval.record), "status": .string(approval.status)]
            }
        case (.post, "/sandbox/records"):
            return try await change(request) { (changes: Changes) in
                let numbers = try system.withState { state in
                    state.put(try changes.records.map { try $0.applied(in: state.records) })
                }
                return ["records": .texts(numbers.map(SAPRecord.text(ofNumber:)))]
            }
        case (.post, "/sandbox/sessions/end"):
            system.withState { $0.sessions.endAll() }
            return .json(.ok, ["ended": true])
        case (.get, "/sandbox/recorded"):
            let after = request.after
            return lines(system.withState { Array($0.records.all.dropFirst(after)) }) { Self.line(of: $0) }
        default: return nil
        }
    }

    private struct Approval: Decodable {
        let record: String
        let status: String
        let reason: String?
    }

    private struct Changes: Decodable { let records: [Change] }

    /// A change of a record in SAP itself, without any rule. Without a number a record is added. Absent fields are
    /// unchanged.
    private struct Change: Decodable {
        let record: String?
        let person: String?
        let companyCode: String?
        let date: Day?
        let hundredths: Int?
        let hoursText: String?
        let note: String?
        let wbsElement: String?
        let status: SAPRecord.Status?

        func applied(in records: SAPRecords) throws -> SAPRecord {
            if var changed = record.flatMap({ Int($0) }).flatMap({ records[$0] }) {
                // A record keeps its person, who is part of an index.
                if let date { changed.date = date }
                if let hundredths { changed.hundredths = hundredths }
                if let hoursText { changed.hoursText = hoursText.isEmpty ? nil : hoursText }
                if let note { changed.note = note }
                if let wbsElement { changed.wbsElement = wbsElement }
                if let status { changed.status = status }
                return changed
            }
            guard record == nil, let person, let companyCode, let date else {
                throw EmulatorError("a record does not exist, or a new record is incomplete")
            }
            return SAPRecord(
                number: 0, person: person, companyCode: companyCode, date: date, hundredths: hundredths ?? 100,
                note: note ?? "", wbsElement: wbsElement ?? "", activityType: "", status: status ?? .released,
                predecessor: nil, releasedOnSave: true, hoursText: hoursText)
        }
    }

    private static func line(of record: SAPRecord) -> JSON {
        [
            "record": .string(SAPRecord.text(ofNumber: record.number)), "person": .string(record.person),
            "companyCode": .string(record.companyCode), "date": .string(record.date.description),
            "hours": .string(Hours(hundredths: record.hundredths).description), "note": .string(record.note),
            "wbsElement": .string(record.wbsElement), "status": .string(String(record.status.rawValue)),
            "predecessor": .text(record.predecessor.map(SAPRecord.text(ofNumber:))),
            "cancelled": .bool(record.status == .cancelled),
        ]
    }
}

extension SAPTimeSheetRules.Refusal: EmulatorRefusal {
    var response: Response { .json(.badRequest, SAPEntities.error(messages)) }
}

extension HTTPField.Name {
    static let csrfToken = custom("x-csrf-token")

    static func custom(_ text: String) -> HTTPField.Name {
        guard let name = HTTPField.Name(text) else { preconditionFailure("\(text) is no name of a header") }
        return name
    }
}

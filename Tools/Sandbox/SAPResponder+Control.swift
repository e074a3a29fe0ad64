import Essentials
import Hummingbird
import Model

/// The control routes below `/sandbox/`, without credentials.
extension SAPResponder {
    func control(_ request: Request) async throws -> Response {
        switch (request.method, request.uri.path) {
        case (.post, "/sandbox/organisation"):
            return try await SandboxControl.change(request) { (organisation: SAPOrganisation) in
                system.load(organisation)
                return try SandboxControl.encoded([
                    "people": organisation.people.count, "projects": organisation.projects.count,
                ])
            }
        case (.post, "/sandbox/approvals"):
            return try await SandboxControl.change(request) { (approval: Approval) in
                guard let number = Int(approval.record), let code = Int(approval.status),
                    let status = SAPRecord.Status(rawValue: code), (approval.reason ?? "").count <= 4,
                    system.approve(number, status, reason: approval.reason)
                else { throw SandboxProblem(message: "record \(approval.record) has no such move") }
                return try SandboxControl.encoded(["record": approval.record, "status": approval.status])
            }
        case (.post, "/sandbox/records"):
            return try await SandboxControl.change(request) { (changes: Changes) in
                let records = changes.records.map { $0.applied(to: $0.record.flatMap(Int.init).flatMap(system.record)) }
                let numbers = system.put(records.compactMap(\.self))
                guard numbers.count == records.count else {
                    throw SandboxProblem(message: "a record is not there, or a new one lacks something")
                }
                return try SandboxControl.encoded(["records": numbers.map(SAPRecord.text(ofNumber:))])
            }
        case (.post, "/sandbox/sessions/end"):
            sessions.endAll()
            return try SandboxControl.encoded(["ended": true])
        case (.get, "/sandbox/recorded"):
            return SandboxControl.lines(request) { [system] after in
                let records = system.records(after: after, countMax: 500)
                return records.last.map { (records.map(SAPResponder.line), $0.number) }
            }
        default:
            return try await system.control(request) ?? .notFound
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

        func applied(to known: SAPRecord?) -> SAPRecord? {
            if var changed = known {
                // A record keeps its person, who is part of an index.
                if let date { changed.date = date }
                if let hundredths { changed.hundredths = hundredths }
                if let hoursText { changed.hoursText = hoursText.isEmpty ? nil : hoursText }
                if let note { changed.note = note }
                if let wbsElement { changed.wbsElement = wbsElement }
                if let status { changed.status = status }
                return changed
            }
            guard record == nil, let person, let companyCode, let date else { return nil }
            return SAPRecord(
                number: 0, person: person, companyCode: companyCode, date: date, hundredths: hundredths ?? 100,
                note: note ?? "", wbsElement: wbsElement ?? "", activityType: "", status: status ?? .released,
                predecessor: nil, releasedOnSave: true, hoursText: hoursText)
        }
    }

    private static func line(of record: SAPRecord) -> JSONText {
        .object([
            ("record", .string(SAPRecord.text(ofNumber: record.number))),
            ("person", .string(record.person)),
            ("companyCode", .string(record.companyCode)),
            ("date", .string(record.date.description)),
            ("hours", .string(SAPEntities.decimal(record.hundredths))),
            ("note", .string(record.note)),
            ("wbsElement", .string(record.wbsElement)),
            ("status", .string(String(record.status.rawValue))),
            ("predecessor", record.predecessor.map { .string(SAPRecord.text(ofNumber: $0)) } ?? .null),
            ("cancelled", .bool(record.status == .cancelled)),
        ])
    }
}

import Hummingbird
import Model

/// `/sandbox/…`: what a demo or a test does behind SAP's back. It needs no credentials.
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

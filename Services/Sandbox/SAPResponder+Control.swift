import Hummingbird
import Model

/// `/sandbox/…`: what a demo or a test does behind SAP's back. It needs no credentials.
extension SAPResponder {
    func control(_ request: Request) async throws -> Response {
        switch (request.method, request.uri.path) {
        case (.get, "/sandbox/switches"):
            return try SandboxControl.encoded(system.switches)
        case (.post, "/sandbox/switches"):
            return try await SandboxControl.change(request) { (patch: SwitchesPatch<SAPSwitches>) in
                try SandboxControl.encoded(system.patch(patch))
            }
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
        case (.get, "/sandbox/stats"):
            return try SandboxControl.encoded(system.counts)
        case (.get, "/sandbox/recorded"):
            return recorded(after: request.uri.queryParameters["after"].flatMap { Int($0) } ?? 0)
        default:
            return .notFound
        }
    }

    private struct Approval: Decodable {
        let record: String
        let status: String
        let reason: String?
    }

    /// One line of JSON per record, in the order of their numbers.
    private func recorded(after: Int) -> Response {
        SandboxControl.lines(after: after) { [system] after in
            let records = system.records(after: after, countMax: 500)
            return records.last.map { (records.map(SAPResponder.line), $0.number) }
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

import Essentials
import Hummingbird
import Model

/// The control routes below `/sandbox/`, without credentials.
extension EconomicResponder {
    func control(_ request: Request) async throws -> Response {
        switch (request.method, request.uri.path) {
        case (.post, "/sandbox/organisation"):
            return try await SandboxControl.change(request) { (organisation: EconomicOrganisation) in
                system.load(organisation)
                return try SandboxControl.encoded([
                    "employees": organisation.employees.count, "projects": organisation.projects.count,
                ])
            }
        case (.post, "/sandbox/entries"):
            return try await SandboxControl.change(request) { (change: Change) in
                guard let number = system.save(change.number, change.apply) else {
                    throw SandboxProblem(message: "there is no time entry \(change.number ?? 0)")
                }
                return try SandboxControl.encoded(["number": number])
            }
        case (.post, "/sandbox/entries/batch"):
            return try await SandboxControl.change(request) { (changes: Changes) in
                try SandboxControl.encoded(["count": changes.entries.count { system.save($0.number, $0.apply) != nil }])
            }
        case (.get, "/sandbox/recorded"):
            return SandboxControl.lines(request) { [system] after in
                let records = system.records(after: after, countMax: 500)
                return records.last.map { (records.map(EconomicResponder.line), $0.number) }
            }
        default:
            return try await system.control(request) ?? .economicNotFound
        }
    }

    /// Another user's change of a time entry: its approval, reconciliation, values or deletion. Without a number an
    /// entry is added. Absent fields are unchanged.
    private struct Change: Decodable {
        let number: Int?
        let employeeNumber: Int?
        let projectNumber: Int?
        let activityNumber: Int?
        let date: Day?
        let numberOfHours: Double?
        let text: String?
        let isApproved: Bool?
        let isReconciled: Bool?
        let isDeleted: Bool?

        func apply(_ record: inout EconomicRecord) {
            // An entry keeps its employee, who is part of an index.
            if let employeeNumber, number == nil { record.employeeNumber = employeeNumber }
            if let projectNumber { record.projectNumber = projectNumber }
            if let activityNumber { record.activityNumber = activityNumber }
            if let date { record.date = date }
            if let numberOfHours { record.numberOfHours = numberOfHours }
            if let text { record.text = text }
            if let isApproved { record.isApproved = isApproved }
            if let isReconciled { record.isReconciled = isReconciled }
            if let isDeleted { record.isDeleted = isDeleted }
        }
    }

    private struct Changes: Decodable { let entries: [Change] }

    private static func line(of record: EconomicRecord) -> JSONText {
        .object([
            ("number", .number(record.number)), ("employeeNumber", .number(record.employeeNumber)),
            ("projectNumber", .number(record.projectNumber)), ("activityNumber", .number(record.activityNumber)),
            ("date", .string(record.date.description)), ("numberOfHours", .decimal(record.numberOfHours)),
            ("text", .string(record.text)), ("isApproved", .bool(record.isApproved)),
            ("isReconciled", .bool(record.isReconciled)), ("isDeleted", .bool(record.isDeleted)),
            ("version", .number(record.version)),
        ])
    }
}

import Essentials
import HTTPTypes
import Hummingbird

extension EconomicEmulator {
    func control(_ request: Request) async throws -> Response? {
        switch (request.method, request.uri.path) {
        case (.post, "/sandbox/entries"):
            return try await change(request) { (change: Change) in
                guard let number = system.withState({ $0.save(change.number, change.apply) }) else {
                    throw EmulatorError("there is no time entry \(change.number ?? 0)")
                }
                return ["number": .number(number)]
            }
        case (.get, "/sandbox/recorded"):
            let first = request.after + 1
            let records = system.withState { state in
                state.records.numbers(ofEmployee: nil, from: first).compactMap { state.records[$0] }
            }
            return lines(records) { Self.line(of: $0) }
        default: return nil
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

    private static func line(of record: EconomicRecord) -> JSON {
        [
            "number": .number(record.number), "employeeNumber": .number(record.employeeNumber),
            "projectNumber": .number(record.projectNumber), "activityNumber": .number(record.activityNumber),
            "date": .string(record.date.description), "numberOfHours": .decimal(record.numberOfHours),
            "text": .string(record.text), "isApproved": .bool(record.isApproved),
            "isReconciled": .bool(record.isReconciled), "isDeleted": .bool(record.isDeleted),
            "version": .number(record.version),
        ]
    }
}

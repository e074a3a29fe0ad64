import Essentials
import HTTPTypes
import Hummingbird

extension SAPEmulator {
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
                let numbers = system.withState { state in
                    let records = changes.records.compactMap { change in
                        change.applied(to: change.record.flatMap { Int($0) }.flatMap { state.records[$0] })
                    }
                    return records.count == changes.records.count ? state.put(records) : []
                }
                guard numbers.count == changes.records.count else {
                    throw EmulatorError("a record does not exist, or a new record is incomplete")
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

    private static func line(of record: SAPRecord) -> JSON {
        [
            "record": .string(SAPRecord.text(ofNumber: record.number)), "person": .string(record.person),
            "companyCode": .string(record.companyCode), "date": .string(record.date.description),
            "hours": .string(SAPEntities.decimal(record.hundredths)), "note": .string(record.note),
            "wbsElement": .string(record.wbsElement), "status": .string(String(record.status.rawValue)),
            "predecessor": .text(record.predecessor.map(SAPRecord.text(ofNumber:))),
            "cancelled": .bool(record.status == .cancelled),
        ]
    }
}

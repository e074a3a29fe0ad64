import Essentials
import Model

/// A time sheet record as the sandbox keeps it, and as a line of its journal and of `GET /sandbox/recorded`.
struct SAPRecord: Codable, Equatable, Sendable {
    /// `TimeSheetRecord`: grows by one.
    var number: Int
    /// `PersonWorkAgreementExternalID`
    var person: String
    var companyCode: String
    var date: Day
    /// Hundredths of an hour.
    var hundredths: Int
    var note: String
    var wbsElement: String
    var activityType: String
    /// The other fields that time is assigned by, those that are not empty; `nil`: none.
    var assignments: [String: String]?
    var status: Status
    /// The record this one replaces.
    var predecessor: Int?
    var releasedOnSave: Bool

    /// Why an approver refused it: a code of the customer's own, at most four characters.
    var rejectionReason: String?
    /// The text returned as its hours, if it differs from them.
    var hoursText: String?

    /// CATS statuses. Source: SAP Help Portal.
    enum Status: Int, Codable, Sendable {
        case inProcess = 10
        case released = 20
        case approved = 30
        case rejected = 40
        /// Approved once, then changed: the successor waits for approval.
        case changedAfterApproval = 50
        case cancelled = 60
    }

    /// The encoding that `Codable` makes.
    var json: JSON {
        [
            "number": .number(number), "person": .string(person), "companyCode": .string(companyCode),
            "date": .string(date.description), "hundredths": .number(hundredths), "note": .string(note),
            "wbsElement": .string(wbsElement), "activityType": .string(activityType),
            "assignments": assignments.map { .object($0.map { ($0, .string($1)) }) } ?? .null,
            "status": .number(status.rawValue), "predecessor": predecessor.map { .number($0) } ?? .null,
            "releasedOnSave": .bool(releasedOnSave), "rejectionReason": .text(rejectionReason),
            "hoursText": .text(hoursText),
        ]
    }

    static func text(ofNumber number: Int) -> String { padded(number, to: 12) }
}

/// The body of a POST, by the names of the service's metadata.
struct SAPEntryRequest: Decodable, Sendable {
    /// The names of the fields in `SAPRecord.assignments`.
    private static let assignmentFields: Set = [
        "InternalOrder", "ReceiverCostCenter", "SenderCostCenter", "TimeSheetTaskType", "TimeSheetTaskLevel",
        "TimeSheetTaskComponent", "TimeSheetOvertimeCategory", "WorkItem", "BillingControlCategory",
        "TimeSheetWrkLocCode",
    ]

    var PersonWorkAgreementExternalID: String?
    var CompanyCode: String?
    var TimeSheetRecord: String?
    var TimeSheetDate: String?
    var TimeSheetIsReleasedOnSave: Bool?
    var TimeSheetOperation: String?
    var TimeSheetDataFields: [String: String?]?

    func field(_ name: String) -> String? { TimeSheetDataFields?[name] ?? nil }

    /// The fields of `SAPRecord.assignments` that are given, as far as they are not empty.
    var assignments: [String: String] {
        (TimeSheetDataFields ?? [:]).compactMapValues(\.self).filter {
            Self.assignmentFields.contains($0.key) && !$0.value.isEmpty
        }
    }

    /// `/Date(1427673600000)/` or `2015-03-30T00:00:00`
    var day: Day? {
        guard let text = TimeSheetDate else { return nil }
        if text.hasPrefix("/Date("), text.hasSuffix(")/"), let milliseconds = Int(text.dropFirst(6).dropLast(2)) {
            guard milliseconds % 86_400_000 == 0 else { return nil }
            return Day(daysSinceEpoch: milliseconds / 86_400_000)
        }
        return Day(String(text.prefix(10)))
    }

    /// decimal(4,2)
    var hundredths: Int? {
        field("RecordedHours").flatMap { Hours($0)?.hundredths }.flatMap { abs($0) < 10_000 ? $0 : nil }
    }
}

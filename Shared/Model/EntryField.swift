import Essentials
import FoundationEssentials

/// The fields of a `TimeEntry`, by their JSON names.
package enum EntryField: String, CodingKey, CaseIterable {
    case text, reportingTemplate, reporting, timeType, entryDate, startTime, endTime, durationSeconds, createdOn
    case submitRequested, status
    case backendId, deleteRequested, statusAt

    /// Whether only the server writes the field.
    package var isServerOwned: Bool {
        switch self {
        case .backendId, .deleteRequested, .statusAt: true
        case .text, .reportingTemplate, .reporting, .timeType, .entryDate, .startTime, .endTime, .durationSeconds,
            .createdOn, .submitRequested, .status:
            false
        }
    }

    /// Describes the values that the field accepts if it does not accept `value`, otherwise `nil`. `null` clears a
    /// field, but an entry always has a status.
    package func objection(to value: ArraySlice<UInt8>) -> String? {
        if self != .status && value.elementsEqual("null".utf8) { return nil }
        return isValid(value) ? nil : requirement
    }

    private func isValid(_ value: ArraySlice<UInt8>) -> Bool {
        let text = JSONObject.text(value)
        return switch self {
        case .text: text.map { $0.unicodeScalars.count <= TimeEntry.textLengthMax } ?? false
        case .reportingTemplate: text.flatMap { UUID(ascii: $0) } != nil
        case .reporting: Self.areSelections(value)
        case .timeType: text.flatMap { TimeEntry.TimeType(rawValue: $0) } != nil
        case .entryDate, .createdOn: text.flatMap { Day($0) } != nil
        case .startTime, .endTime: text.flatMap { ZonedTime($0) } != nil
        case .durationSeconds: JSONNumber.whole(value, as: Int32.self) != nil
        case .submitRequested: value.elementsEqual("true".utf8) || value.elementsEqual("false".utf8)
        // Rules reject a device's write of a server-owned status; here only the form counts.
        case .status: text.flatMap { EntryStatus(rawValue: $0) } != nil
        case .backendId: text != nil
        case .deleteRequested, .statusAt: false
        }
    }

    private var requirement: String {
        switch self {
        case .text: "a string of at most \(TimeEntry.textLengthMax) characters (Unicode code points), or null"
        case .reportingTemplate: "the UUID of a template, or null"
        case .reporting:
            "an array of at most \(TimeEntry.selectionsMax) objects with exactly the fields "
                + "context and node, both UUIDs, or null"
        case .timeType: "\"interval\" or \"duration\", or null"
        case .entryDate, .createdOn: "a date as yyyy-MM-dd, or null"
        case .startTime, .endTime: "a time with offset as 2015-03-30T08:00:00-04:00 (RFC 3339), or null"
        case .durationSeconds: "a whole number of seconds between \(Int32.min) and \(Int32.max), or null"
        case .submitRequested: "true, false or null"
        case .status: "one of " + EntryStatus.allCases.map(\.rawValue).joined(separator: ", ")
        case .backendId, .deleteRequested, .statusAt: "absent: only the server writes it"
        }
    }

    private static func areSelections(_ value: ArraySlice<UInt8>) -> Bool {
        let array = Array(value)
        guard let elements = try? JSONCheck.elements(of: array), elements.count <= TimeEntry.selectionsMax else {
            return false
        }
        return elements.allSatisfy { element in
            guard let selection = try? JSONObject(Array(array[element])), selection.members.count == 2 else {
                return false
            }
            return ["context", "node"].allSatisfy { key in
                selection.id(of: key) != nil
            }
        }
    }
}

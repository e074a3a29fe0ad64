import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

// Fast decoding of stored records and entries: with `JSONDecoder`, decoding took half the time of an uncached
// comparison. JSON that Fieldpost does not write in this form is left to the decoder, which reports errors.

extension RealmObject {
    /// Decodes the object as `decoded(as:by:)` does.
    func seenRecord(by decoder: JSONDecoder) throws(StoredJSONError) -> SeenRecord? {
        if let fields, let record = SeenRecord(plain: fields.bytes) { return record }
        return try decoded(as: SeenRecord.self, by: decoder)
    }

    /// Decodes the object as `decoded(as:by:)` does.
    func timeEntry(by decoder: JSONDecoder) throws(StoredJSONError) -> TimeEntry? {
        if let fields, let entry = TimeEntry(plain: fields.bytes) { return entry }
        return try decoded(as: TimeEntry.self, by: decoder)
    }
}

extension SeenRecord {
    /// - Returns: `nil` if `JSONDecoder` must be used.
    init?(plain fields: [UInt8]) {
        guard let fields = try? PlainFields(fields) else { return nil }
        var (backendID, status): (String?, String?)
        var day: Day?
        var durationSeconds: Int?
        var references: [String: String]?
        var (marker, text, message, version): (String?, String?, String?, String?)
        var toldRun: Int64?
        do {
            for (key, value) in fields.members {
                switch key {
                case "backendId": backendID = try value.text()
                case "marker": marker = try value.text()
                case "day": day = try value.text { Day($0) }
                case "durationSeconds": durationSeconds = try value.number()
                case "text": text = try value.text()
                case "status": status = try value.text()
                case "references": references = try value.texts()
                case "message": message = try value.text()
                case "version": version = try value.text()
                case "toldRun": toldRun = try value.number()
                default: break
                }
            }
        } catch { return nil }
        guard let backendID, let day, let durationSeconds, let status, let references else { return nil }
        self.init(
            backendId: backendID, marker: marker, day: day, durationSeconds: durationSeconds, text: text,
            status: status, references: references, message: message, version: version, toldRun: toldRun)
    }
}

extension TimeEntry {
    /// - Returns: `nil` if `JSONDecoder` must be used, which includes entries with an interval.
    init?(plain fields: [UInt8]) {
        guard let fields = try? PlainFields(fields) else { return nil }
        self.init()
        do {
            for (key, value) in fields.members {
                guard let field = EntryField(rawValue: key) else { continue }
                switch field {
                case .backendId: backendId = try value.text()
                case .status: status = try value.text { EntryStatus(rawValue: $0) } ?? .draft
                case .text: text = try value.text()
                case .reportingTemplate: reportingTemplate = try value.text { UUID(ascii: $0) }
                case .reporting: reporting = try value.selections()
                case .timeType: timeType = try value.text { TimeType(rawValue: $0) } ?? .duration
                case .entryDate: entryDate = try value.text { Day($0) }
                case .durationSeconds: durationSeconds = try value.number()
                case .createdOn: createdOn = try value.text { Day($0) }
                case .submitRequested: submitRequested = try value.flag()
                case .deleteRequested: deleteRequested = try value.flag()
                case .statusAt: statusAt = try value.text { Timestamp($0) }
                case .startTime, .endTime: return nil
                }
            }
        } catch { return nil }
    }
}

/// The members of an object, each decoded to an expected type. A null is treated as absent.
private struct PlainFields {
    struct NotPlain: Error {}

    struct Value {
        let bytes: ArraySlice<UInt8>

        private var isNull: Bool { bytes.elementsEqual("null".utf8) }

        func text() throws(NotPlain) -> String? {
            if let text = JSONObject.text(bytes) { return text }
            guard isNull else { throw NotPlain() }
            return nil
        }

        /// - Parameter read: Parses the text.
        func text<Read>(_ read: (String) -> Read?) throws(NotPlain) -> Read? {
            guard let text = try text() else { return nil }
            guard let value = read(text) else { throw NotPlain() }
            return value
        }

        func number<Number: FixedWidthInteger>() throws(NotPlain) -> Number? {
            if isNull { return nil }
            guard let number = Number(String(decoding: bytes, as: UTF8.self)) else { throw NotPlain() }
            return number
        }

        func flag() throws(NotPlain) -> Bool? {
            if isNull { return nil }
            if bytes.elementsEqual("true".utf8) { return true }
            guard bytes.elementsEqual("false".utf8) else { throw NotPlain() }
            return false
        }

        func texts() throws(NotPlain) -> [String: String]? {
            if isNull { return nil }
            var texts: [String: String] = [:]
            for (key, value) in try PlainFields(Array(bytes)).members {
                guard let text = try value.text() else { throw NotPlain() }
                texts[key] = text
            }
            return texts
        }

        func selections() throws(NotPlain) -> [ReportingSelection] {
            if isNull || bytes.elementsEqual("[]".utf8) { return [] }
            let list = Array(bytes)
            guard let elements = try? JSONCheck.elements(of: list) else { throw NotPlain() }
            var selections: [ReportingSelection] = []
            for element in elements {
                let fields = try PlainFields(Array(list[element])).members
                func id(_ key: String) throws(NotPlain) -> UUID? {
                    guard let field = fields.first(where: { $0.key == key }) else { return nil }
                    return try field.value.text { UUID(ascii: $0) }
                }
                guard let context = try id("context"), let node = try id("node") else { throw NotPlain() }
                selections.append(ReportingSelection(context: context, node: node))
            }
            return selections
        }
    }

    let members: [(key: String, value: Value)]

    init(_ bytes: [UInt8]) throws(NotPlain) {
        guard let object = try? JSONObject(bytes) else { throw NotPlain() }
        members = object.members.map { ($0.key, Value(bytes: object.bytes[$0.value])) }
    }
}

/// Fields of a `DefectCommand` object: a change or a read of a defect that a person requests, performed in the
/// environment's tracker with the person's own login. In the person's own realm.
///
/// The person writes the request and submits it with ``submitRequested``. From then on it is immutable and is performed
/// once. `defect-submitter` writes the result. To retry, the person creates another command.
public struct DefectCommand: Codable, Equatable, Sendable {
    /// The operation in the tracker.
    public enum Operation: String, Codable, CaseIterable, Sendable {
        /// Creates a record with ``DefectCommand/fields``.
        case create
        /// Sets ``DefectCommand/fields`` of a record.
        case modify
        /// Changes a record's state with ``DefectCommand/actionName`` and sets ``DefectCommand/fields``.
        case changeState
        /// Deletes a record.
        case delete
        /// Reads the allowed values of ``DefectCommand/choicesOf``; saves nothing.
        case choices
        /// Reads all fields of a record, and the actions that its state allows.
        case read
        /// Reads the fields of an action's form with their requiredness and choices, of a record or of a new one; saves
        /// nothing.
        case form
        /// Reads the queries of the person's workspace, or of its folder ``DefectCommand/folder``.
        case queries
        /// Runs the query ``DefectCommand/query``, and reads rows from ``DefectCommand/fromRow`` on.
        case runQuery

        /// Whether nothing is saved in the tracker.
        package var isReading: Bool {
            switch self {
            case .create, .modify, .changeState, .delete: false
            case .choices, .read, .form, .queries, .runQuery: true
            }
        }
    }

    /// The status of a command. All statuses except ``waiting`` are final.
    public enum Status: String, Codable, CaseIterable, Sendable {
        /// The command is not submitted or not performed yet.
        case waiting
        /// The command was performed.
        case done
        /// The tracker rejected the command, or the command is invalid; nothing was changed.
        case refused
        /// The record no longer matches ``DefectCommand/base``; nothing was changed.
        case conflict
        /// It is unknown whether the command was performed.
        case unknown
    }

    /// The operation.
    public var operation: Operation
    /// The tracker's id of the record, such as `SAMPL00000001`. For a new record the server writes it.
    public var record: String?
    /// The name of the tracker's action that changes the state, or whose form is read; never the name of a state.
    public var actionName: String?
    /// The new values by the tracker's field names; an empty value clears the field. With ``Operation/choices``
    /// and ``Operation/form``: values on which lists and mandatory fields depend.
    public var fields: [String: String]
    /// The values that the person's decision is based on: a field with another current value is a conflict.
    public var base: [String: String]
    /// With ``Operation/choices``: the fields whose lists are requested. With ``Operation/form`` the same; empty: the
    /// first 20 fields that can be edited.
    public var choicesOf: [String]
    /// With ``Operation/queries``: the tracker's id of the folder; `nil`: the roots of the workspace.
    public var folder: String?
    /// With ``Operation/runQuery``: the tracker's id of the query.
    public var query: String?
    /// With ``Operation/runQuery``: the first requested row, counted from 0; `nil`: 0.
    public var fromRow: Int?
    /// Whether the command is submitted.
    public var submitRequested: Bool
    /// The status.
    public var status: Status
    /// Messages for display, such as reasons for a rejection; one problem each.
    public var messages: [String]
    /// The allowed values by field name; empty for a field without a list. Fields that the tracker does not have are
    /// omitted.
    public var choices: [String: [String]]?
    /// The result of ``Operation/read``, ``Operation/form``, ``Operation/queries`` and ``Operation/runQuery``. With
    /// ``Status/conflict``: the record as ``Operation/read`` reads it, if it could be read.
    public var detail: DefectDetail?

    /// Creates the fields of a command.
    public init(
        operation: Operation, record: String? = nil, actionName: String? = nil, fields: [String: String] = [:],
        base: [String: String] = [:], choicesOf: [String] = [], folder: String? = nil, query: String? = nil,
        fromRow: Int? = nil, submitRequested: Bool = false, status: Status = .waiting, messages: [String] = [],
        choices: [String: [String]]? = nil, detail: DefectDetail? = nil
    ) {
        self.operation = operation
        self.record = record
        self.actionName = actionName
        self.fields = fields
        self.base = base
        self.choicesOf = choicesOf
        self.folder = folder
        self.query = query
        self.fromRow = fromRow
        self.submitRequested = submitRequested
        self.status = status
        self.messages = messages
        self.choices = choices
        self.detail = detail
    }

    /// Reads the fields; all except `operation` are optional.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        operation = try container.decode(Operation.self, forKey: .operation)
        record = try container.decodeIfPresent(String.self, forKey: .record)
        actionName = try container.decodeIfPresent(String.self, forKey: .actionName)
        fields = try container.decodeIfPresent([String: String].self, forKey: .fields) ?? [:]
        base = try container.decodeIfPresent([String: String].self, forKey: .base) ?? [:]
        choicesOf = try container.decodeIfPresent([String].self, forKey: .choicesOf) ?? []
        folder = try container.decodeIfPresent(String.self, forKey: .folder)
        query = try container.decodeIfPresent(String.self, forKey: .query)
        fromRow = try container.decodeIfPresent(Int.self, forKey: .fromRow)
        submitRequested = try container.decodeIfPresent(Bool.self, forKey: .submitRequested) ?? false
        status = try container.decodeIfPresent(Status.self, forKey: .status) ?? .waiting
        messages = try container.decodeIfPresent([String].self, forKey: .messages) ?? []
        choices = try container.decodeIfPresent([String: [String]].self, forKey: .choices)
        detail = try container.decodeIfPresent(DefectDetail.self, forKey: .detail)
    }
}

extension DefectCommand: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case operation, record, actionName, fields, base, choicesOf, folder, query, fromRow, submitRequested, status
        case messages, choices, detail
    }

    /// Maximum length of a tracker's id in characters.
    package static let recordLengthMax = 64
    /// Maximum length of a field's or action's name in characters.
    package static let nameLengthMax = 100
    /// Maximum number of fields of a command, and of lists that it requests.
    package static let fieldCountMax = 200
    package static let choicesOfCountMax = 20
    /// Maximum of ``fromRow``.
    package static let fromRowMax = 49_999

    package var objection: String? {
        for (name, id) in [("record", record), ("folder", folder), ("query", query)] {
            guard let id, !id.isEmpty, !Self.isTrackerID(id) else { continue }
            return "'\(name)' must be 1 to \(Self.recordLengthMax) of the characters A-Z, a-z, 0-9, '_', '-' and '.', "
                + "beginning with a letter or digit, such as SAMPL00000001"
        }
        if let fromRow, !(0...Self.fromRowMax).contains(fromRow) {
            return "'fromRow' must be from 0 to \(Self.fromRowMax)"
        }
        if choicesOf.count > Self.choicesOfCountMax {
            return "'choicesOf' has \(choicesOf.count) names; at most \(Self.choicesOfCountMax) are allowed"
        }
        if max(fields.count, base.count) > Self.fieldCountMax {
            return "'fields' and 'base' may have at most \(Self.fieldCountMax) fields each"
        }
        let names = [
            "actionName": [actionName].compactMap(\.self), "choicesOf": choicesOf, "fields": Array(fields.keys),
            "base": Array(base.keys),
        ]
        for (field, names) in names.sorted(by: { $0.key < $1.key }) where !names.allSatisfy(Self.isName) {
            return "'\(field)': a name must be at most \(Self.nameLengthMax) characters without control characters"
        }
        return nil
    }

    /// The id becomes part of a path of the tracker's API and of an index.
    private static func isTrackerID(_ text: String) -> Bool {
        func isLetterOrDigit(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: false
            }
        }
        return text.utf8.count <= recordLengthMax && text.utf8.first.map(isLetterOrDigit) ?? false
            && text.utf8.allSatisfy { isLetterOrDigit($0) || "_-.".utf8.contains($0) }
    }

    private static func isName(_ text: String) -> Bool {
        text.unicodeScalars.count <= nameLengthMax
            && text.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// The names of the fields that the person writes.
    package static let ownerNames = [
        CodingKeys.operation, .record, .actionName, .fields, .base, .choicesOf, .folder, .query, .fromRow,
        .submitRequested,
    ].map(\.stringValue)

    /// The row of ``Kind/defectCommand``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user], route: Route(to: Topics.defect, from: [.user]))
}

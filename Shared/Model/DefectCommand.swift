/// Fields of a `DefectCommand` object: something a person wants to be done with a defect, in the environment's tracker
/// and as themselves. In the person's own realm.
///
/// Its person writes what is wanted, and hands it in with ``submitRequested``: from then on it stays as it is, and is
/// done once. `defect-submitter` writes what came of it. To try again, the person makes another one.
public struct DefectCommand: Codable, Equatable, Sendable {
    /// What is to be done.
    public enum Operation: String, Codable, CaseIterable, Sendable {
        /// A new record with ``DefectCommand/fields``.
        case create
        /// ``DefectCommand/fields`` of a record get other values.
        case modify
        /// A record's state is changed by ``DefectCommand/actionName``, with ``DefectCommand/fields``.
        case changeState
        /// A record is removed.
        case delete
        /// What can be chosen for ``DefectCommand/choicesOf`` is read; nothing is saved.
        case choices
    }

    /// What has become of it. A status but ``waiting`` is the last one.
    public enum Status: String, Codable, CaseIterable, Sendable {
        /// It is not handed in, or not done yet.
        case waiting
        /// It is done.
        case done
        /// The tracker refuses it, or it cannot be understood; nothing was done.
        case refused
        /// Somebody else has changed the record since ``DefectCommand/base``; nothing was done.
        case conflict
        /// Nobody can tell whether it was done.
        case unknown
    }

    /// What is to be done.
    public var operation: Operation
    /// The tracker's id of the record, such as `SAMPL00000001`. Of a new one the server writes it.
    public var record: String?
    /// The name of the tracker's action that changes the state; never the state itself.
    public var actionName: String?
    /// The values that fields are to have, by the tracker's names of the fields. An empty one takes the value away.
    /// With ``Operation/choices``: those that lists depend on.
    public var fields: [String: String]
    /// What its person saw of the record when they decided: a field that has another value by now is a conflict.
    public var base: [String: String]
    /// With ``Operation/choices``: the fields whose lists are wanted.
    public var choicesOf: [String]
    /// It is handed in.
    public var submitRequested: Bool
    /// What has become of it.
    public var status: Status
    /// What its person should know, such as why it is refused; one problem each.
    public var messages: [String]
    /// What can be chosen, by the names of the fields; empty where there is no list. A field that the tracker does not
    /// have is not in it.
    public var choices: [String: [String]]?

    /// A command.
    public init(
        operation: Operation, record: String? = nil, actionName: String? = nil, fields: [String: String] = [:],
        base: [String: String] = [:], choicesOf: [String] = [], submitRequested: Bool = false,
        status: Status = .waiting, messages: [String] = [], choices: [String: [String]]? = nil
    ) {
        self.operation = operation
        self.record = record
        self.actionName = actionName
        self.fields = fields
        self.base = base
        self.choicesOf = choicesOf
        self.submitRequested = submitRequested
        self.status = status
        self.messages = messages
        self.choices = choices
    }

    /// Reads the fields; all but `operation` may be left out.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        operation = try container.decode(Operation.self, forKey: .operation)
        record = try container.decodeIfPresent(String.self, forKey: .record)
        actionName = try container.decodeIfPresent(String.self, forKey: .actionName)
        fields = try container.decodeIfPresent([String: String].self, forKey: .fields) ?? [:]
        base = try container.decodeIfPresent([String: String].self, forKey: .base) ?? [:]
        choicesOf = try container.decodeIfPresent([String].self, forKey: .choicesOf) ?? []
        submitRequested = try container.decodeIfPresent(Bool.self, forKey: .submitRequested) ?? false
        status = try container.decodeIfPresent(Status.self, forKey: .status) ?? .waiting
        messages = try container.decodeIfPresent([String].self, forKey: .messages) ?? []
        choices = try container.decodeIfPresent([String: [String]].self, forKey: .choices)
    }
}

extension DefectCommand: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case operation, record, actionName, fields, base, choicesOf, submitRequested, status, messages, choices
    }

    /// Most characters of a record's id.
    package static let recordLengthMax = 64
    /// Most characters of the name of a field or an action.
    package static let nameLengthMax = 100
    /// Most fields of one command, and most lists that it asks for.
    package static let fieldCountMax = 200
    package static let choicesOfCountMax = 20

    package var objection: String? {
        if let record, !record.isEmpty, !Self.isRecordID(record) {
            return "'record' must be 1 to \(Self.recordLengthMax) of the characters A-Z, a-z, 0-9, '_', '-' and '.', "
                + "beginning with a letter or digit, such as SAMPL00000001"
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

    /// It is part of a path of the tracker's API, and of an index.
    private static func isRecordID(_ text: String) -> Bool {
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

    /// The names of the fields that its person writes.
    package static let ownerNames = [
        CodingKeys.operation, .record, .actionName, .fields, .base, .choicesOf, .submitRequested,
    ].map(\.stringValue)

    /// The row of ``Kind/defectCommand``.
    package static let row = KindRow(
        Self.self, CodingKeys.self, in: [.user], route: Route(to: Topics.defect, from: [.user]))
}

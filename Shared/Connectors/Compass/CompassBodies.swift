internal import BackendHTTP
internal import BackendProtocol
internal import FoundationEssentials

// JSON as Compass has it. The names are the vendor's own; what is not used here is passed over.

/// An id, encoded as a number in some responses and as a text in others.
struct NumberOrText: Codable {
    let text: String

    init(_ text: String) { self.text = text }

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let number = try? container.decode(Int64.self) {
            text = String(number)
        } else {
            text = try container.decode(String.self)
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}

/// A value of a record or of a row. A null is an empty text.
struct ValueBody: Decodable {
    /// `nil` if the value is neither a text nor a whole number.
    let text: String?

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        text = container.decodeNil() ? "" : (try? NumberOrText(from: decoder))?.text
    }
}

// MARK: Workspace

struct ItemBody: ListedRow {
    static let idMembers = ["dbId", "name"]

    let dbId: NumberOrText
    let name: String
    let workspaceItemType: String?

    /// - Parameter kind: The kind, if the response does not state it.
    func item(ofKind kind: String) -> Folder.Item {
        Folder.Item(id: dbId.text, name: name, kind: workspaceItemType ?? kind)
    }
}

struct FolderBody: ListedRow {
    static let idMembers = ["dbId", "name"]

    let dbId: NumberOrText
    let name: String
    let children: [ListedElement<ItemBody>]?

    var folder: Folder {
        Folder(id: dbId.text, name: name, items: (children ?? []).compactMap(\.row).map { $0.item(ofKind: "") })
    }
}

struct QueryBody: Codable {
    struct Column: Codable {
        let fieldPathName: String
        let isShown: Bool?
        let sortType: String?
    }

    let name: String?
    let dbId: NumberOrText?
    let dbIdParent: NumberOrText?
    let primaryEntityDefName: String?
    let queryFieldDefs: [Column]?
    let filterNode: FilterBody?

    init(_ query: QueryDefinition) {
        name = query.name
        dbId = NumberOrText(query.id ?? "")
        dbIdParent = NumberOrText(query.folder)
        primaryEntityDefName = query.recordType
        queryFieldDefs = query.columns.map {
            Column(fieldPathName: $0.field, isShown: true, sortType: $0.sort.rawValue)
        }
        filterNode = FilterBody(query.filter)
    }

    func json() throws(BackendError) -> [UInt8] {
        guard let json = try? JSONEncoder().encode(self) else {
            throw .refused(["The query cannot be written as JSON"])
        }
        return Array(json)
    }

    /// The columns of the rows; `nil` if the response does not state them.
    var columns: [QueryDefinition.Column]? { queryFieldDefs.map(Self.shown) }

    static func shown(_ columns: [Column]) -> [QueryDefinition.Column] {
        columns.filter { $0.isShown ?? true }.map {
            QueryDefinition.Column(
                $0.fieldPathName, sort: $0.sortType.flatMap(QueryDefinition.Sort.init(rawValue:)) ?? .none)
        }
    }

    func definition(_ id: String) -> QueryDefinition {
        var query = QueryDefinition(
            name: name ?? "", folder: dbIdParent?.text ?? "", recordType: primaryEntityDefName ?? "",
            columns: columns ?? [], filter: filterNode?.filter ?? QueryFilter())
        query.id = id
        return query
    }
}

/// A query without its filter.
struct ColumnsBody: Decodable {
    let queryFieldDefs: [QueryBody.Column]

    func definition(_ id: String) -> QueryDefinition {
        var query = QueryDefinition(
            name: "", folder: "", recordType: "", columns: QueryBody.shown(queryFieldDefs), filter: QueryFilter())
        query.id = id
        return query
    }
}

struct FilterBody: Codable {
    struct Condition: Codable {
        let fieldPath: String
        let compOp: Comparison
        let values: [String]?
    }

    let boolOp: QueryFilter.Joint?
    let fieldFilters: [Condition]?
    let childFilterNodes: [FilterBody]?

    init(_ filter: QueryFilter) {
        boolOp = filter.joint
        fieldFilters = filter.conditions.map {
            Condition(fieldPath: $0.field, compOp: $0.comparison, values: $0.values)
        }
        childFilterNodes = filter.children.isEmpty ? nil : filter.children.map(FilterBody.init)
    }

    var filter: QueryFilter {
        QueryFilter(
            boolOp ?? .all,
            (fieldFilters ?? []).map { QueryFilter.Condition($0.fieldPath, $0.compOp, $0.values ?? []) },
            children: (childFilterNodes ?? []).map(\.filter))
    }
}

// MARK: Records

struct FieldBody: Decodable {
    let name: String
    let type: String?
    let value: ValueBody?
    let requiredness: String?
    let requirednessForUser: String?
    let fieldChoiceList: [String]?
    let messageText: String?

    var field: Field {
        let requiredness: Field.Requiredness =
            switch requirednessForUser ?? requiredness ?? "OPTIONAL" {
            case "MANDATORY": .mandatory
            case "OPTIONAL": .optional
            case "READONLY": .readOnly
            case let other: .other(other)
            }
        return Field(
            name: name, type: type, value: value?.text ?? "", isReadable: value.map { $0.text != nil } ?? true,
            requiredness: requiredness, choices: fieldChoiceList,
            message: messageText.flatMap { $0.isEmpty ? nil : $0 })
    }
}

struct RecordBody: Decodable {
    let fields: [FieldBody]

    /// The display id; `nil` without such a field or value.
    var id: String? { fields.first { $0.name == "id" }?.value?.text.flatMap { $0.isEmpty ? nil : $0 } }

    /// - Parameter requestedID: The id of the request, used if the record has no id field.
    func record(_ requestedID: String) -> Record { Record(id: id ?? requestedID, fields: fields.map(\.field)) }
}

struct RecordTypeBody: Decodable {
    struct Action: Decodable {
        let name: String
        let actionType: String?
        let actionSourceStateNames: [String]?
        let actionDestStateName: String?
    }

    let name: String?
    let actions: [Action]?
    let fieldDefs: [FieldBody]?

    /// - Parameter requestedName: The name of the request.
    func type(_ requestedName: String) -> RecordType {
        RecordType(
            name: name ?? requestedName,
            actions: (actions ?? []).map {
                RecordType.Action(
                    name: $0.name, kind: $0.actionType ?? "", sourceStates: $0.actionSourceStateNames ?? [],
                    destinationState: $0.actionDestStateName)
            }, fields: (fieldDefs ?? []).map(\.field))
    }
}

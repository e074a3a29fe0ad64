import Essentials

/// A query as a client sends it, and as the workspace keeps it.
///
/// Source: the query documents of the vendor's sample app.
struct CompassQuery: Codable, Sendable {
    struct Column: Codable, Sendable {
        var fieldPathName: String
        var isShown: Bool?
        var sortType: String?
    }

    struct Node: Codable, Sendable {
        var boolOp: String?
        var fieldFilters: [Filter]?
        var childFilterNodes: [Node]?
    }

    struct Filter: Codable, Sendable {
        var fieldPath: String
        var compOp: String
        var values: [String]?
    }

    var name: String
    /// The folder's id, as a client names it.
    var dbIdParent: String
    var primaryEntityDefName: String
    var queryFieldDefs: [Column]
    var filterNode: Node?

    /// `EQ`, `NEQ`, `GT` and `IN` are what the sample app sends; the others are spelled as the product's own constants.
    enum Comparison: String {
        case equal = "COMP_OP_EQ"
        case notEqual = "COMP_OP_NEQ"
        case greater = "COMP_OP_GT"
        case greaterOrEqual = "COMP_OP_GTE"
        case less = "COMP_OP_LT"
        case lessOrEqual = "COMP_OP_LTE"
        case isIn = "COMP_OP_IN"
        case isNotIn = "COMP_OP_NOT_IN"
        case isNull = "COMP_OP_IS_NULL"
        case isNotNull = "COMP_OP_IS_NOT_NULL"
    }

    /// The error of the query, if any.
    var problem: String? {
        if name.isEmpty { return "The query has no name." }
        guard primaryEntityDefName.lowercased() == CompassSchema.recordType.lowercased() else {
            return "The record type \"\(primaryEntityDefName)\" does not exist."
        }
        if shown.isEmpty { return "The query has no columns." }
        for column in queryFieldDefs {
            if !Self.isField(column.fieldPathName) { return "The field \"\(column.fieldPathName)\" does not exist." }
            guard ["NO_SORT", "SORT_DESC", "SORT_ASC", nil].contains(column.sortType) else {
                return "There is no sort type \(column.sortType ?? "")."
            }
        }
        return filterNode.flatMap(Self.problem)
    }

    /// The columns that rows have.
    var shown: [Column] { queryFieldDefs.filter { $0.isShown ?? true } }

    /// Whether there is a row for each row of history.
    var isAboutHistory: Bool {
        func uses(_ node: Node) -> Bool {
            (node.fieldFilters ?? []).contains { Self.isOfHistory($0.fieldPath) }
                || (node.childFilterNodes ?? []).contains(where: uses)
        }
        return queryFieldDefs.contains { Self.isOfHistory($0.fieldPathName) } || filterNode.map(uses) ?? false
    }

    static func isOfHistory(_ field: String) -> Bool { field.hasPrefix("history.") }

    private static func isField(_ name: String) -> Bool {
        CompassSchema.fieldsByName[name] != nil || CompassHistory.columns[name] != nil
    }

    private static func isTime(_ name: String) -> Bool { name == "Submit_Date" || name == "history.action_timestamp" }

    private static func problem(_ node: Node) -> String? {
        guard ["BOOL_OP_AND", "BOOL_OP_OR", nil].contains(node.boolOp) else {
            return "There is no operator \(node.boolOp ?? "")."
        }
        for filter in node.fieldFilters ?? [] {
            if !isField(filter.fieldPath) { return "The field \"\(filter.fieldPath)\" does not exist." }
            guard let comparison = Comparison(rawValue: filter.compOp) else {
                return "There is no operator \(filter.compOp)."
            }
            let values = filter.values ?? []
            let needsNone = comparison == .isNull || comparison == .isNotNull
            if needsNone != values.isEmpty {
                return "The filter of \"\(filter.fieldPath)\" has \(values.count) values."
            }
            if isTime(filter.fieldPath), let wrong = values.first(where: { !isTimeText($0) }) {
                return "\"\(wrong)\" is not a date."
            }
        }
        for child in node.childFilterNodes ?? [] {
            if let problem = problem(child) { return problem }
        }
        return nil
    }

    /// `yyyy-MM-dd HH:mm:ss`
    private static func isTimeText(_ text: String) -> Bool {
        let parts = text.split(separator: " ", omittingEmptySubsequences: false)
        return parts.count == 2 && Timestamp("\(parts[0])T\(parts[1])Z") != nil
    }
}

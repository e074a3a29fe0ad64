/// A query being run: what it finds among the records at one moment, for one user.
struct CompassEvaluation {
    let query: CompassQuery
    let user: CompassUser
    let zone: CompassZone
    /// By a clock that is right.
    let nowMs: Int64
    /// The zone of times in the rows; filters always use the server's zone.
    var shownZone: CompassZone
    /// Characters of a multi-line text; 0: all of them.
    var multiLineTextLengthMax = 0
    /// Rows; 0: all of them.
    var rowsMax = 0

    /// A record, joined with a row of its history if the query uses history.
    private struct Row {
        let record: CompassRecord
        let history: CompassHistory?

        func value(_ field: String, _ zone: CompassZone) -> String {
            guard CompassQuery.isOfHistory(field) else { return record.value(field, zone) }
            return history.flatMap { CompassHistory.columns[field]?($0, zone) } ?? ""
        }
    }

    /// - Parameter history: That of each record, by the same index.
    func rows(_ records: [CompassRecord?], _ history: [[CompassHistory]]) -> [[String]] {
        var found: [Row] = []
        let isAboutHistory = query.isAboutHistory
        for (index, record) in records.enumerated() {
            guard let record, !record.isDeleted, record.canBeRead(by: user) else { continue }
            let entries: [CompassHistory?] = isAboutHistory ? history[index].filter { $0.visibleAtMs <= nowMs } : [nil]
            for entry in entries {
                let row = Row(record: record, history: entry)
                if matches(row, query.filterNode) { found.append(row) }
            }
        }
        let sorted = sort(found)
        return (rowsMax > 0 ? sorted.prefix(rowsMax) : sorted[...]).map(values)
    }

    /// By the columns that are sorted, the first one first; otherwise as they were found, by id.
    private func sort(_ rows: [Row]) -> [Row] {
        let columns = query.queryFieldDefs.filter { $0.sortType == "SORT_DESC" || $0.sortType == "SORT_ASC" }
        guard !columns.isEmpty else { return rows }
        let keyed = rows.map { row in (row: row, keys: columns.map { row.value($0.fieldPathName, zone) }) }
        return keyed.sorted { left, right in
            for (column, keys) in zip(columns, zip(left.keys, right.keys)) where keys.0 != keys.1 {
                let isLess = Self.isLess(keys.0, keys.1, column.fieldPathName)
                return column.sortType == "SORT_DESC" ? !isLess : isLess
            }
            return false
        }.map(\.row)
    }

    private func values(_ row: Row) -> [String] {
        query.shown.map { column in
            let value = row.value(column.fieldPathName, shownZone)
            let isLong = CompassSchema.fieldsByName[column.fieldPathName]?.type == "MULTILINE_STRING"
            return isLong && multiLineTextLengthMax > 0 ? String(value.prefix(multiLineTextLengthMax)) : value
        }
    }

    private func matches(_ row: Row, _ node: CompassQuery.Node?) -> Bool {
        guard let node else { return true }
        let (filters, children) = (node.fieldFilters ?? [], node.childFilterNodes ?? [])
        if filters.isEmpty, children.isEmpty { return true }
        if node.boolOp == "BOOL_OP_OR" {
            return filters.contains { matches(row, $0) } || children.contains { matches(row, $0) }
        }
        return filters.allSatisfy { matches(row, $0) } && children.allSatisfy { matches(row, $0) }
    }

    private func matches(_ row: Row, _ filter: CompassQuery.Filter) -> Bool {
        guard let comparison = CompassQuery.Comparison(rawValue: filter.compOp) else { return false }
        let value = row.value(filter.fieldPath, zone)
        let values = (filter.values ?? []).map { $0 == "[CURRENT_USER]" ? user.name : $0 }
        let first = values.first ?? ""
        let isLess = { (left: String, right: String) in Self.isLess(left, right, filter.fieldPath) }
        return switch comparison {
        case .equal: value == first
        case .notEqual: value != first
        case .greater: isLess(first, value)
        case .greaterOrEqual: !isLess(value, first)
        case .less: isLess(value, first)
        case .lessOrEqual: !isLess(first, value)
        case .isIn: values.contains(value)
        case .isNotIn: !values.contains(value)
        case .isNull: value.isEmpty
        case .isNotNull: !value.isEmpty
        }
    }

    /// Compares numbers by value, other values as text.
    private static func isLess(_ left: String, _ right: String, _ field: String) -> Bool {
        if field.hasSuffix("dbid") || field.hasSuffix("version"), let left = Int(left), let right = Int(right) {
            return left < right
        }
        return left < right
    }
}

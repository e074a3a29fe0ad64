import Model

/// A view of SQLite with typed columns of a list or an object that another table or view has as JSON.
///
/// The row of an object has its members. A list has a row for each element, with its index; a map has a row for each
/// member, with its name. The column `id` is that of the table's row.
struct NestedView: Sendable {
    /// The name of the table or view, then the name of the column.
    let name: String
    /// The query, on several lines.
    let query: String

    /// Statements that replace the view.
    var statements: [String] { ["DROP VIEW IF EXISTS \(quoted(name))", "CREATE VIEW \(quoted(name)) AS\n\(query)"] }

    /// Returns the views of a field. There are none for texts, numbers and booleans.
    static func views(of field: TableDescription.Field, in table: String) -> [NestedView] {
        guard case .structure(let structure) = field.form else { return [] }
        return Column(name: field.name, source: table, keys: [], isWritten: true).views(structure)
    }
}

/// A column with JSON, from which views are made.
private struct Column {
    let name: String
    /// The table or view.
    let source: String
    /// Columns of the source that identify its row together with `id`.
    let keys: [String]
    /// Whether an app writes the column. A text that is not JSON would fail all queries, also those of other rows.
    let isWritten: Bool

    private var view: String { "\(source)_\(name)" }

    /// Returns the view of the column, then the views of the lists and objects in it.
    func views(_ structure: FieldStructure) -> [NestedView] {
        switch structure {
        case .object(let members): [objectView(members)] + views(of: members, keys)
        case .list(let form): elementViews("\(name)Index", form)
        case .map(let form): elementViews("\(name)Key", form)
        }
    }

    private func objectView(_ members: [FieldStructure.Member]) -> NestedView {
        let from =
            isWritten
            ? "(SELECT \(quoted("id")), \(checked(quoted(name))) AS \(quoted(name)) FROM \(quoted(source)))"
            : quoted(source)
        return NestedView(
            name: view,
            query: """
                SELECT \((["id"] + keys).map(quoted).joined(separator: ", ")),
                \(columns(members, of: quoted(name)))
                FROM \(from)
                WHERE \(quoted(name)) IS NOT NULL
                """)
    }

    private func elementViews(_ key: String, _ form: FieldForm) -> [NestedView] {
        let value = FieldStructure.Member(name: "value", form: form)
        let (columns, nested) =
            if case .structure(.object(let members)) = form {
                (columns(members, of: "element.value"), members)
            } else {
                (column("element.value", value), [value])
            }
        let list = "source.\(quoted(name))"
        let own = (["id"] + keys).map { "source.\(quoted($0))" } + ["element.key AS \(quoted(key))"]
        let view = NestedView(
            name: view,
            query: """
                SELECT \(own.joined(separator: ", ")),
                \(columns)
                FROM \(quoted(source)) AS source,
                    json_each(\(isWritten ? checked(list) : list)) AS element
                """)
        return [view] + views(of: nested, keys + [key])
    }

    /// Returns the views of the lists and objects among members.
    private func views(of members: [FieldStructure.Member], _ keys: [String]) -> [NestedView] {
        members.flatMap { member -> [NestedView] in
            guard case .structure(let structure) = member.form else { return [] }
            return Column(name: member.name, source: view, keys: keys, isWritten: false).views(structure)
        }
    }

    private func columns(_ members: [FieldStructure.Member], of json: String) -> String {
        members.map { column("json_extract(\(json), '$.\($0.name)')", $0) }.joined(separator: ",\n")
    }

    /// Returns a line of the query. A member `id` is named after the list, because `id` is that of the table's row.
    private func column(_ value: String, _ member: FieldStructure.Member) -> String {
        let name = member.name == "id" ? "\(name)Id" : member.name
        return "    CAST(\(value) AS \(member.form.columnType.sql)) AS \(quoted(name))"
    }

    private func checked(_ column: String) -> String { "CASE WHEN json_valid(\(column)) THEN \(column) END" }
}

private func quoted(_ name: String) -> String { "\"\(name)\"" }

import Model

/// A table of a client's SQLite database: the objects of one kind, with a column for each field.
struct TableDescription: Sendable {
    struct Field: Sendable {
        let name: String
        let form: FieldForm

        var columnType: ColumnType { form.columnType }
    }

    /// The name of the table, as in `object_type` of the PowerSync protocol.
    let name: String
    /// The fields, in display order. The column `id` exists in each table and is not declared.
    let fields: [Field]

    /// The tables of the kinds that devices can read.
    static let ofDevices = Kind.allCases.filter(\.isReadByDevices).map(TableDescription.init)

    init(name: String, fields: [Field]) {
        self.name = name
        self.fields = fields
    }

    init(_ kind: Kind) {
        self.init(name: kind.rawValue, fields: kind.fieldNames.map { Field(name: $0, form: kind.form(of: $0)) })
    }

    /// The views of the lists and objects in the table, each after those that it reads.
    var views: [NestedView] { fields.flatMap { NestedView.views(of: $0, in: name) } }
}

extension Kind {
    /// Whether people can open a realm with objects of this kind. Only integrations read `/users`.
    fileprivate var isReadByDevices: Bool { !Set(row.realms).isSubset(of: [.users, .system]) }
}

/// The type of a column in SQLite.
enum ColumnType: String, Sendable {
    case text, integer, real

    /// The name in SQL.
    var sql: String { rawValue.uppercased() }
}

extension FieldForm {
    /// The type of the column with a field of this form. A list or an object is JSON text.
    var columnType: ColumnType {
        switch self {
        case .text, .structure: .text
        case .boolean, .integer: .integer
        case .number: .real
        }
    }
}

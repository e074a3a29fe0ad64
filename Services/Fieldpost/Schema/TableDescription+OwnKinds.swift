import KindSchema
import Model

extension TableDescription {
    /// Returns the tables of the kinds of a schema file, ordered by their names.
    static func all(in file: EnvironmentKinds) -> [TableDescription] {
        file.kinds.values.sorted { $0.name < $1.name }.map(TableDescription.init)
    }

    private init(_ declaration: KindDeclaration) {
        // The number of the kind has no effect.
        let kind = Kind.own(OwnKind(declaration, number: OwnKind.numbers.lowerBound))
        var views = ViewNames()
        self.init(
            name: kind.rawValue,
            fields: kind.fieldNames.map { name in
                let view = "\(kind.rawValue)_\(name)"
                return Field(name: name, form: views.form(kind.form(of: name), name, view: view, keys: []))
            })
    }
}

/// The names of the views of a table, without regard to capital letters as in SQLite.
private struct ViewNames {
    private var used: Set<String> = []

    /// Returns the form with the members that can be columns. A list or an object is a text if it cannot have a view.
    ///
    /// - Parameters:
    ///   - name: The name of the column.
    ///   - view: The name of its view.
    ///   - keys: The columns for the indexes of outer lists.
    mutating func form(_ form: FieldForm, _ name: String, view: String, keys: Set<String>) -> FieldForm {
        switch form {
        case .text, .boolean, .integer, .number, .structure(.map): return form
        case .structure(.object(let members)):
            guard used.insert(view.lowercased()).inserted else { return .text }
            let columns = columns(members, name, view: view, keys: keys)
            return columns.isEmpty ? .text : .structure(.object(columns))
        case .structure(.list(let element)):
            let key = "\(name)Index".lowercased()
            guard !keys.contains(key), used.insert(view.lowercased()).inserted else { return .text }
            let keys = keys.union([key])
            guard case .structure(.object(let members)) = element else {
                return .structure(.list(of: self.form(element, "value", view: "\(view)_value", keys: keys)))
            }
            let columns = columns(members, name, view: view, keys: keys)
            return .structure(.list(of: columns.isEmpty ? .text : .structure(.object(columns))))
        }
    }

    /// Returns the members whose names are different identifiers.
    private mutating func columns(
        _ members: [FieldStructure.Member], _ name: String, view: String, keys: Set<String>
    ) -> [FieldStructure.Member] {
        var names = keys.union(["id"])
        return members.compactMap { member in
            let column = member.name == "id" ? "\(name)Id" : member.name
            guard column.wholeMatch(of: /[A-Za-z][A-Za-z0-9_]*/) != nil, names.insert(column.lowercased()).inserted
            else { return nil }
            let form = form(member.form, member.name, view: "\(view)_\(member.name)", keys: keys)
            return .init(name: member.name, form: form)
        }
    }
}

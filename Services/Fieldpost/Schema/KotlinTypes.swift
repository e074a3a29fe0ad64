import Essentials
import KindSchema

/// Types of own kinds for apps with the PowerSync SDK for Kotlin. All are nested in `Kinds`.
///
/// Lists and objects are JSON.
enum KotlinTypes {
    static func source(of kinds: [TypedKind]) -> String {
        var names = Identifiers(reserved: types)
        let kinds = kinds.map { kind in
            let name = names.add(kind.name)
            let description = kind.description ?? "A row of the kind \(kind.name)."
            return SourceText.blockComment(description) + declaration(kind, name)
        }
        return prelude + """
            /** The types of own kinds. */
            object Kinds {
            \(SourceText.indented(kinds.joined(separator: "\n\n")))
            }
            """
    }

    /// Names of types that the source uses.
    private static let types: Set = [
        "Any", "Boolean", "Change", "Companion", "Double", "FieldUpdate", "Json", "JsonArray",
        "JsonObject", "JvmInline", "Kinds", "List", "Long", "New", "Pair", "SqlCursor", "Statement",
        "String",
    ]
    private static let keywords: Set = [
        "as", "break", "class", "continue", "do", "else", "false", "for", "fun", "if", "in", "interface", "is", "null",
        "object", "package", "return", "super", "this", "throw", "true", "try", "typealias", "typeof", "val", "var",
        "when", "while",
    ]

    /// Declarations that do not depend on the kinds.
    private static let prelude = """
        package com.example.fieldpost

        import com.powersync.db.SqlCursor
        import com.powersync.db.getBooleanOptional
        import com.powersync.db.getDoubleOptional
        import com.powersync.db.getLongOptional
        import com.powersync.db.getString
        import com.powersync.db.getStringOptional
        import kotlinx.serialization.json.Json
        import kotlinx.serialization.json.JsonArray
        import kotlinx.serialization.json.JsonObject

        /** A statement of SQL with its parameters. */
        class Statement(val sql: String, val parameters: List<Any?>)

        /** The new value of a field that may be absent; null: none. */
        class FieldUpdate<out Value>(val value: Value?)

        private fun insert(table: String, id: String, columns: List<Pair<String, Any?>>) = Statement(
            "INSERT INTO \\"$table\\" (id${columns.joinToString("") { ", \\"${it.first}\\"" }}) " +
                "VALUES (?${", ?".repeat(columns.size)})",
            listOf<Any?>(id) + columns.map { it.second },
        )

        private fun update(table: String, id: String, columns: List<Pair<String, Any?>>) =
            columns.takeIf { it.isNotEmpty() }?.let {
                Statement(
                    "UPDATE \\"$table\\" SET ${it.joinToString { "\\"${it.first}\\" = ?" }} WHERE id = ?",
                    it.map { it.second } + id,
                )
            }


        """

    private static func declaration(_ kind: TypedKind, _ name: String) -> String {
        var properties = Identifiers(keywords: keywords, reserved: ["id"])
        var typeNames = Identifiers(reserved: types.union([name]))
        let fields = kind.fields.map { field in
            var choice: String?
            var type = type(of: field.type)
            if case .choice(let values) = field.type.form {
                type = typeNames.add(Identifiers.capitalized(field.name))
                choice = self.choice(values, type)
            }
            return Field(field: field, identifier: properties.add(field.name), type: type, declaration: choice)
        }
        let byName = Dictionary(uniqueKeysWithValues: fields.map { ($0.field.name, $0) })
        let parameters = fields.map {
            "\(SourceText.blockComment($0.field.description))val \($0.identifier): \($0.type)?,"
        }
        let reads = fields.map { "\($0.identifier) = \(read($0))," }
        var parts = fields.compactMap(\.declaration)
        if !kind.newRealms.isEmpty { parts.append(new(kind, kind.newFields.compactMap { byName[$0.name] })) }
        let changed = kind.changedFields.compactMap { byName[$0.name] }
        if !changed.isEmpty { parts.append(change(kind, changed)) }
        let delete = """


                /** Deletes a row. */
                fun delete(id: String) = Statement(\(literal("DELETE FROM \"\(kind.name)\" WHERE id = ?")), listOf(id))
            """
        parts.append(
            """
            companion object {
                /** Reads a row. */
                fun of(row: SqlCursor) = \(name)(
                    id = row.getString("id"),
            \(SourceText.indented(reads.joined(separator: "\n"), by: 8))
                )\(kind.isDeletable ? delete : "")
            }
            """)
        return """
            data class \(name)(
                /** The object's id, followed by the path of its realm. */
                val id: String,
            \(SourceText.indented(parameters.joined(separator: "\n")))
            ) {
            \(SourceText.indented(parts.joined(separator: "\n\n")))
            }
            """
    }

    private struct Field {
        let field: TypedField
        let identifier, type: String
        /// The declaration of a type for it.
        let declaration: String?
    }

    /// Returns the type of a column's values; for a list or an object, that of its JSON.
    private static func type(of type: FieldType) -> String {
        switch type.form {
        case .text, .uuid, .day, .time, .any, .choice: "String"
        case .boolean: "Boolean"
        case .integer: "Long"
        case .number: "Double"
        case .list: "JsonArray"
        case .map, .object: "JsonObject"
        }
    }

    private static func read(_ field: Field) -> String {
        let name = literal(field.field.name)
        switch field.field.type.form {
        case .text, .uuid, .day, .time, .any: return "row.getStringOptional(\(name))"
        case .choice: return "row.getStringOptional(\(name))?.let { \(field.type)(it) }"
        case .boolean: return "row.getBooleanOptional(\(name))"
        case .integer: return "row.getLongOptional(\(name))"
        case .number: return "row.getDoubleOptional(\(name))"
        case .list, .map, .object:
            return "row.getStringOptional(\(name))?.let { Json.parseToJsonElement(it) as? \(field.type) }"
        }
    }

    /// Returns the value of a column.
    private static func column(_ value: String, _ type: FieldType, isNullable: Bool) -> String {
        let member = isNullable ? "?." : "."
        return switch type.form {
        case .text, .uuid, .day, .time, .any, .boolean, .integer, .number: value
        case .choice: "\(value)\(member)value"
        case .list, .map, .object: "\(value)\(member)toString()"
        }
    }

    private static func new(_ kind: TypedKind, _ fields: [Field]) -> String {
        let parameters = fields.map { field in
            guard field.field.isRequired else { return "\(field.identifier): \(field.type)? = null," }
            return "\(field.identifier): \(field.type)\(field.field.type.isNullable ? "?" : ""),"
        }
        let columns = fields.map { field in
            let isNullable = !field.field.isRequired || field.field.type.isNullable
            let value = column(field.identifier, field.field.type, isNullable: isNullable)
            return "Pair(\(literal(field.field.name)), \(value)),"
        }
        let table = literal(kind.name)
        let functions = kind.newRealms.map { realm in
            let (parameter, path) =
                switch realm {
                case .user: (", email: String", "/users/$email")
                case .team: (", team: String", "/teams/$team")
                case .common: ("", "/common")
                case .manager: ("", "/manager")
                }
            let name = "in\(Identifiers.capitalized(realm.rawValue))"
            return "fun \(name)(uuid: String\(parameter)) = insert(\(table), \"$uuid\(path)\", columns)"
        }
        return """
            /** The fields of a new row that people may write. */
            class New(
            \(SourceText.indented(parameters.joined(separator: "\n")))
            ) {
                private val columns: List<Pair<String, Any?>> = listOf(
            \(SourceText.indented(columns.joined(separator: "\n"), by: 8))
                )

            \(SourceText.indented(functions.joined(separator: "\n")))
            }
            """
    }

    private static func change(_ kind: TypedKind, _ fields: [Field]) -> String {
        func isOptional(_ field: Field) -> Bool { !field.field.isRequired || field.field.type.isNullable }
        let parameters = fields.map { field in
            "\(field.identifier): \(isOptional(field) ? "FieldUpdate<\(field.type)>" : field.type)? = null,"
        }
        let columns = fields.map { field in
            let type = field.field.type
            let value =
                isOptional(field)
                ? column("it.value", type, isNullable: true) : column("it", type, isNullable: false)
            return "\(field.identifier)?.let { Pair(\(literal(field.field.name)), \(value)) },"
        }
        return """
            /** A change of the fields that people may change; those that are null keep their values. */
            class Change(
            \(SourceText.indented(parameters.joined(separator: "\n")))
            ) {
                private val columns: List<Pair<String, Any?>> = listOfNotNull(
            \(SourceText.indented(columns.joined(separator: "\n"), by: 8))
                )

                /** Changes a row; null if no field is given. */
                fun of(id: String): Statement? = update(\(literal(kind.name)), id, columns)
            }
            """
    }

    private static func choice(_ values: [String], _ name: String) -> String {
        var names = Identifiers(keywords: keywords, reserved: ["entries", "value"])
        let identifiers = values.map { names.add(Identifiers.camelCase($0)) }
        let cases = zip(identifiers, values).map { "val \($0) = \(name)(\(literal($1)))" }
        return """
            @JvmInline
            value class \(name)(val value: String) {
                companion object {
            \(SourceText.indented(cases.joined(separator: "\n"), by: 8))
                    val entries = listOf<\(name)>(\(identifiers.joined(separator: ", ")))
                }
            }
            """
    }

    private static func literal(_ text: String) -> String {
        SourceText.literal(text, escaped: "\\\"$") { scalar in
            let digits = String(scalar, radix: 16)
            return "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
        }
    }
}

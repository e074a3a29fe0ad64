import KindSchema

/// Types of own kinds for apps with `DeviceClient`. All are nested in `Kinds`.
enum SwiftTypes {
    static func source(of kinds: [TypedKind]) -> String {
        var names = Identifiers(reserved: types)
        let kinds = kinds.map { kind in
            let name = names.add(kind.name)
            return comment(kind.description ?? "An object of the kind \(kind.name).") + declaration(kind, name)
        }
        return """
            // swift-format-ignore-file
            import DeviceClient
            import Essentials
            import Foundation
            import Model

            /// The types of own kinds.
            enum Kinds {
            \(SourceText.indented(kinds.joined(separator: "\n\n")))
            }
            """
    }

    /// Names of types that the source uses.
    private static let types: Set = [
        "Bool", "Day", "DeletableObject", "Double", "FieldJSON", "FieldStep", "FieldText", "FieldUpdate", "Int64",
        "Kinds",
        "NestedObject", "NewInCommonRealm", "NewInManagerRealm", "NewInTeamRealm", "NewInUserRealm", "NewObject",
        "ObjectChange", "OwnObject", "Protocol", "Self", "String", "Timestamp", "Type", "UUID",
    ]
    private static let keywords: Set = [
        "as", "associatedtype", "await", "break", "case", "catch", "class", "continue", "default", "defer", "deinit",
        "do", "else", "enum", "extension", "fallthrough", "false", "fileprivate", "for", "func", "guard", "if",
        "import", "in", "inout", "internal", "is", "let", "nil", "operator", "precedencegroup", "private", "protocol",
        "public", "repeat", "rethrows", "return", "static", "struct", "subscript", "super", "switch", "throw", "throws",
        "true", "try", "typealias", "var", "where", "while",
    ]
    /// Members that each type has, and names that backticks do not escape.
    private static let members: Set = ["allCases", "fieldJSON", "fields", "init", "none", "rawValue", "self", "some"]

    private static func declaration(_ kind: TypedKind, _ name: String) -> String {
        var scope = Scope(types: types.union(["Change", "New"]))
        let fields = kind.fields.map { scope.add($0) }
        let identifiers = Dictionary(uniqueKeysWithValues: fields.map { ($0.field.name, $0) })
        var parts = [
            "static let kindName = \(literal(kind.name))\nlet fields: [String: FieldJSON]",
            fields.map { field in
                comment(field.field.description) + "var \(field.identifier): \(field.type)? { self[\(field.literal)] }"
            }.joined(separator: "\n"),
        ]
        if !kind.blobPaths.isEmpty {
            let paths = kind.blobPaths.map { "[\($0.map(step).joined(separator: ", "))]" }
            parts.append("static let blobPaths: [[FieldStep]] = [\(list(paths))]")
        }
        parts += fields.compactMap(\.declaration)
        let new = kind.newFields.compactMap { identifiers[$0.name] }
        if !kind.newRealms.isEmpty {
            let protocols = kind.newRealms.map { "NewIn\(Identifiers.capitalized($0.rawValue))Realm" }
            parts.append(
                write("New", protocols, kind, new, "The fields of a new object that people may write.") { field in
                    let type = field.type + (field.field.type.isNullable ? "?" : "")
                    return field.field.isRequired ? type : "\(field.type)? = nil"
                })
        }
        let changed = kind.changedFields.compactMap { identifiers[$0.name] }
        if !changed.isEmpty {
            let summary = "A change of the fields that people may change; those that are `nil` keep their values."
            parts.append(
                write("Change", ["ObjectChange"], kind, changed, summary) { field in
                    let isOptional = !field.field.isRequired || field.field.type.isNullable
                    return isOptional ? "FieldUpdate<\(field.type)>? = nil" : "\(field.type)? = nil"
                })
        }
        return """
            struct \(name): \(kind.isDeletable ? "DeletableObject" : "OwnObject") {
            \(SourceText.indented(parts.joined(separator: "\n\n")))
            }
            """
    }

    private static func step(_ step: ValueSchema.PathStep) -> String {
        switch step {
        case .member(let name): ".member(\(literal(name)))"
        case .element: ".each"
        case .others(let names): ".others([\(names.map(literal).joined(separator: ", "))])"
        }
    }

    /// Returns the type of a new object or a change.
    private static func write(
        _ name: String, _ protocols: [String], _ kind: TypedKind, _ fields: [Scope.Field], _ summary: String,
        _ type: (Scope.Field) -> String
    ) -> String {
        var parameters = String(
            SourceText.indented(list(fields.map { "\($0.identifier): \(type($0))" })).drop { $0 == " " })
        if parameters.hasSuffix("\n") { parameters += "    " }
        let values = fields.map { field in
            let isOptional = type(field).hasSuffix("= nil")
            return "        fields[\(field.literal)] = \(field.identifier)\(isOptional ? "?" : "").fieldJSON"
        }
        let body = values.isEmpty ? "" : "\n\(values.joined(separator: "\n"))\n    "
        return """
            \(comment(summary))struct \(name): \(protocols.joined(separator: ", ")) {
                static let kindName = \(literal(kind.name))
                private(set) var fields: [String: FieldJSON] = [:]

                init(\(parameters)) {\(body)}
            }
            """
    }

    /// Returns parameters on one line, or each on its own.
    private static func list(_ parameters: [String]) -> String {
        let line = parameters.joined(separator: ", ")
        return line.count <= 80 ? line : "\n\(SourceText.indented(parameters.joined(separator: ",\n")))\n"
    }

    private static func object(_ fields: [TypedField], _ name: String) -> String {
        var scope = Scope(types: types)
        let fields = fields.map { scope.add($0) }
        let properties = fields.map { field in
            let value = field.field.isRequired && field.field.type.isNullable ? "newValue.fieldJSON" : "newValue"
            let accessors = "get { self[\(field.literal)] } set { self[\(field.literal)] = \(value) }"
            return comment(field.field.description) + "var \(field.identifier): \(field.type)? { \(accessors) }"
        }
        let sorted = fields.filter(\.field.isRequired) + fields.filter { !$0.field.isRequired }
        let parameters = sorted.map { field in
            let type = field.type + (field.field.type.isNullable ? "?" : "")
            return "\(field.identifier): \(field.field.isRequired ? type : "\(field.type)? = nil")"
        }
        let values = sorted.map { field in
            let mark = field.field.isRequired ? "" : "?"
            return "    self.fields[\(field.literal)] = \(field.identifier)\(mark).fieldJSON"
        }
        let initializers = """
            init(fields: [String: FieldJSON]) { self.fields = fields }

            init(\(list(parameters))) {
                fields = [:]
            \(values.joined(separator: "\n"))
            }
            """
        let parts =
            ["var fields: [String: FieldJSON]", properties.joined(separator: "\n"), initializers]
            + fields.compactMap(\.declaration)
        return "struct \(name): NestedObject {\n\(SourceText.indented(parts.joined(separator: "\n\n")))\n}"
    }

    private static func choice(_ values: [String], _ name: String) -> String {
        var names = Identifiers(keywords: keywords, reserved: members)
        let identifiers = values.map { names.add(Identifiers.camelCase($0)) }
        let cases = zip(identifiers, values).map { "    static let \($0) = Self(rawValue: \(literal($1)))" }
        return """
            struct \(name): FieldText {
                let rawValue: String
            \(cases.joined(separator: "\n"))
                static let allCases: [Self] = [\(identifiers.map { ".\($0)" }.joined(separator: ", "))]
            }
            """
    }

    /// The identifiers of a type.
    private struct Scope {
        struct Field {
            let field: TypedField
            let identifier, type: String
            /// The declaration of a type for it.
            let declaration: String?

            var literal: String { SwiftTypes.literal(field.name) }
        }

        private var properties = Identifiers(keywords: keywords, reserved: members)
        private var types: Identifiers

        init(types: Set<String>) { self.types = Identifiers(reserved: types) }

        mutating func add(_ field: TypedField) -> Field {
            var declaration: String?
            let type = type(field.type, field.name, &declaration)
            let identifier = properties.add(Identifiers.camelCase(field.name))
            return Field(field: field, identifier: identifier, type: type, declaration: declaration)
        }

        /// Returns a type without the mark of an optional.
        private mutating func type(_ type: FieldType, _ name: String, _ declaration: inout String?) -> String {
            func element(_ type: FieldType, _ name: String) -> String { name + (type.isNullable ? "?" : "") }
            switch type.form {
            case .text: return "String"
            case .boolean: return "Bool"
            case .integer: return "Int64"
            case .number: return "Double"
            case .uuid: return "UUID"
            case .day: return "Day"
            case .time: return "Timestamp"
            case .any: return "FieldJSON"
            case .list(let other): return "[\(element(other, self.type(other, name, &declaration)))]"
            case .map(let other): return "[String: \(element(other, self.type(other, name, &declaration)))]"
            case .choice(let values):
                let own = types.add(Identifiers.capitalized(Identifiers.camelCase(name)))
                declaration = SwiftTypes.choice(values, own)
                return own
            case .object(let fields):
                let own = types.add(Identifiers.capitalized(Identifiers.camelCase(name)))
                declaration = SwiftTypes.object(fields, own)
                return own
            }
        }
    }

    private static func comment(_ text: String?) -> String {
        SourceText.commentLines(text ?? "", widthMax: 100).map { "/// \($0)\n" }.joined()
    }

    private static func literal(_ text: String) -> String {
        SourceText.literal(text, escaped: "\\\"") { "\\u{\(String($0, radix: 16))}" }
    }
}

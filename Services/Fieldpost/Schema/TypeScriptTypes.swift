import Essentials
import KindSchema

/// Types of own kinds for apps with `fieldpost.js`.
enum TypeScriptTypes {
    static func source(of kinds: [TypedKind]) -> String {
        var names = Identifiers(reserved: [])
        let main = kinds.map { names.add($0.name) }
        let texts = zip(kinds, main).map { kind, name in
            declarations(kind, name, new: names.add("New\(kind.name)"), change: names.add("\(kind.name)Change"))
        }
        return (["import type * as library from \"./fieldpost.js\";"] + texts).joined(separator: "\n\n")
    }

    /// The use of a type.
    private enum Use {
        /// Values that may be from a later version of the file.
        case read
        case new, change
        /// Values in an object or a list, which may have been read.
        case nested

        var isWrite: Bool { self == .new || self == .change }
    }

    private static func declarations(_ kind: TypedKind, _ name: String, new: String, change: String) -> String {
        let description = kind.description ?? "An object of the kind \(kind.name)."
        var parts = [SourceText.blockComment(description) + "export type \(name) = \(object(kind.fields, .read));"]
        if !kind.newRealms.isEmpty {
            let realms = kind.newRealms.map(realm).joined(separator: " | ")
            parts += [
                """
                /** The fields of a new object that people may write. */
                export type \(new) = \(object(kind.newFields, .new));
                """,
                """
                /** Creates an object, in a realm where people may do it. */
                export function create\(kind.name)(
                    client: library.Fieldpost, realm: \(realms), id: string, fields: \(new)) {
                    return client.put(realm, \(SourceText.json(kind.name)), id, fields);
                }
                """,
            ]
        }
        let address = "client: library.Fieldpost, object: { readonly realm: string; readonly id: string }"
        if !kind.changedFields.isEmpty {
            parts += [
                """
                /** The fields that people may change. Those that are absent keep their values. */
                export type \(change) = \(object(kind.changedFields, .change));
                """,
                """
                /** Changes an object. */
                export function change\(kind.name)(
                    \(address), fields: \(change)) {
                    return client.patch(object.realm, \(SourceText.json(kind.name)), object.id, fields);
                }
                """,
            ]
        }
        if kind.isDeletable {
            parts.append(
                """
                /** Deletes an object. */
                export function delete\(kind.name)(\(address)) {
                    return client.delete(object.realm, \(SourceText.json(kind.name)), object.id);
                }
                """)
        }
        return parts.joined(separator: "\n\n")
    }

    private static func realm(_ name: KindDeclaration.RealmName) -> String {
        switch name {
        case .user: "`/users/${string}`"
        case .team: "`/teams/${string}`"
        case .common: "\"/common\""
        case .manager: "\"/manager\""
        }
    }

    private static func object(_ fields: [TypedField], _ use: Use) -> String {
        if fields.isEmpty { return "{ [name: string]: never }" }
        let members = fields.map { field in
            let isOptional = !field.isRequired || use == .read || use == .change
            let isNullable = use == .read || (use.isWrite && !field.isRequired)
            let type = type(field.type, use, isNullable: isNullable)
            let name =
                field.name.wholeMatch(of: /[A-Za-z_][A-Za-z0-9_]*/) == nil
                ? SourceText.json(field.name) : field.name
            return SourceText.blockComment(field.description) + "\(name)\(isOptional ? "?" : ""): \(type);"
        }
        return "{\n\(SourceText.indented(members.joined(separator: "\n")))\n}"
    }

    private static func type(_ type: FieldType, _ use: Use, isNullable: Bool = false) -> String {
        let null = type.isNullable || isNullable ? " | null" : ""
        switch type.form {
        case .text, .uuid, .day, .time: return "string\(null)"
        case .boolean: return "boolean\(null)"
        case .integer, .number: return "number\(null)"
        case .any: return "library.JSONValue"
        case .choice(let values):
            let others = use.isWrite ? "" : " | (string & {})"
            return values.map(SourceText.json).joined(separator: " | ") + others + null
        case .list(let element): return "(\(self.type(element, use.isWrite ? use : .nested)))[]\(null)"
        case .map(let value): return "{ [name: string]: \(self.type(value, .nested)) }\(null)"
        case .object(let fields): return object(fields, .nested) + null
        }
    }
}

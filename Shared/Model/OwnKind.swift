package import Essentials
package import KindSchema
import Synchronization

/// A kind that an environment declares in its schema file.
///
/// Its number belongs to its name: kinds of the same name in several environments of an installation have one number.
/// Two kinds are equal if their numbers are.
public final class OwnKind: Sendable {
    /// The numbers of such kinds in PostgreSQL.
    package static let numbers: ClosedRange<Int16> = 1_000...Int16.max

    package let number: Int16
    /// The kind's name; for a kind that was read by its number alone, `#` and the number.
    public let name: String
    /// The kind's declaration in its environment; `nil` if it was not loaded.
    package let declaration: KindDeclaration?
    package let row: KindRow

    /// Creates a kind as its environment declares it.
    package init(_ declaration: KindDeclaration, number: Int16) {
        self.number = number
        self.declaration = declaration
        name = declaration.name
        row = KindRow(declaration)
    }

    /// Creates a kind without its declaration: it has no fields, and is in no realm.
    package init(number: Int16, name: String? = nil) {
        self.number = number
        self.name = name ?? "#\(number)"
        declaration = nil
        row = KindRow(names: [], in: [], ids: .random, bytesMax: Kind.fieldsBytesMax)
    }

    /// The people of a realm whose permissions are added up, before a write.
    package struct Audience: Hashable, Sendable {
        package let writers: [KindDeclaration.Writer]
        package let realm: KindDeclaration.RealmName
        /// Whether the object exists: a write changes it, instead of creating it.
        package let exists: Bool

        package init(_ writers: [KindDeclaration.Writer], in realm: KindDeclaration.RealmName, exists: Bool) {
            (self.writers, self.realm, self.exists) = (writers, realm, exists)
        }
    }

    /// The permitted writes of an audience.
    package struct PermittedWrites: Sendable {
        /// The writable fields, in the order of the declaration; `nil`: no put and no patch.
        package let fields: [String]?
        package let mayDelete: Bool
    }

    /// The permitted writes that were computed: a declaration never changes, and few audiences occur.
    private let permitted = Mutex<[Audience: PermittedWrites]>([:])

    /// Returns what any permission of the declaration allows to an audience; `nil` without a declaration.
    package func permittedWrites(of audience: Audience) -> PermittedWrites? {
        guard let declaration else { return nil }
        return permitted.withLock { permitted in
            if let writes = permitted[audience] { return writes }
            func fields(_ act: KindDeclaration.Act) -> Set<String>? {
                let granted = audience.writers.compactMap { declaration.fields(of: $0, act, in: audience.realm) }
                return granted.isEmpty ? nil : granted.reduce(into: []) { $0.formUnion($1) }
            }
            let written = fields(audience.exists ? .change : .create)
            let writes = PermittedWrites(
                fields: written.map { written in declaration.fieldNames.filter(written.contains) },
                mayDelete: fields(.delete) != nil)
            permitted[audience] = writes
            return writes
        }
    }

    private static let byName = Mutex<[String: OwnKind]>([:])

    /// Returns the kind of a name for an app, without a declaration. Its number is below 0, and only valid in this
    /// process.
    ///
    /// - Returns: `nil` if the process has used 32,768 names.
    static func named(_ name: String) -> OwnKind? {
        byName.withLock { kinds in
            if let kind = kinds[name] { return kind }
            guard let number = Int16(exactly: -1 - kinds.count) else { return nil }
            let kind = OwnKind(number: number, name: name)
            kinds[name] = kind
            return kind
        }
    }

    /// Validates an object's fields. A field that may be absent may also be null.
    ///
    /// - Throws: ``FieldObjection``, the first one detected.
    package func check(_ fields: JSONObject) throws(FieldObjection) {
        guard let schema = declaration?.fields else { return }
        let value: SchemaValue
        do { value = try SchemaValue(fields) } catch { throw FieldObjection("\(error)") }
        let present = (value.members ?? []).filter { $0.value != .null || schema.required.contains($0.name) }
        if let problem = schema.problems(of: .object(present), countMax: 1).first {
            throw FieldObjection(problem.description)
        }
    }

    /// Returns the form of a field.
    func form(of field: String) -> FieldForm { declaration?.fields.property(field)?.form ?? .text }
}

extension OwnKind: Hashable {
    /// Compares the numbers: two versions of a kind are one kind.
    public static func == (left: OwnKind, right: OwnKind) -> Bool { left.number == right.number }

    /// Hashes the number.
    public func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

extension KindRow {
    fileprivate init(_ kind: KindDeclaration) {
        self.init(
            names: kind.fieldNames,
            in: KindDeclaration.RealmName.allCases.filter(kind.realms.contains).map(\.realmClass),
            ids: kind.ids == .natural ? .natural : .random, bytesMax: Int(kind.bytesMax))
    }
}

extension KindDeclaration.RealmName {
    /// The class of the realms.
    package var realmClass: RealmClass.Name {
        switch self {
        case .user: .user
        case .team: .team
        case .common: .common
        case .manager: .manager
        }
    }
}

extension EnvironmentKinds {
    /// Reads a schema file.
    ///
    /// - Throws: ``Problems``.
    package init(_ file: SchemaValue) throws(Problems) {
        try self.init(file, builtIn: Kind.allCases.map(\.rawValue))
    }
}

extension ValueSchema {
    /// The form of the values; texts if they may have several forms.
    fileprivate var form: FieldForm {
        switch types?.subtracting([.null]) {
        case nil where values?.allSatisfy({ [.bool(true), .bool(false), .null].contains($0) }) == true: .boolean
        case [.boolean]: .boolean
        case [.integer]: .integer
        case [.number], [.integer, .number]: .number
        case [.array]: .list(of: items.first?.form ?? .text)
        case [.object]:
            .structure(.object(properties.map { FieldStructure.Member(name: $0.name, form: $0.schema.form) }))
        default: .text
        }
    }
}

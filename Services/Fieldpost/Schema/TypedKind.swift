import KindSchema
import Model

/// A kind of a schema file, as source code for apps declares it.
struct TypedKind: Sendable {
    let name: String
    let description: String?
    let fields: [TypedField]
    /// The classes of realms in which people may create objects, in the order of their declaration; empty: none.
    let newRealms: [KindDeclaration.RealmName]
    /// The fields that people may write in new objects, those that are required first.
    let newFields: [TypedField]
    /// The fields that people may change.
    let changedFields: [TypedField]
    let isDeletable: Bool
    /// The paths of the references to images and documents.
    let blobPaths: [[ValueSchema.PathStep]]

    /// Returns the kinds of a file, ordered by their names.
    static func all(in file: SchemaValue, _ kinds: EnvironmentKinds) -> [TypedKind] {
        kinds.kinds.values.sorted { $0.name < $1.name }.map { TypedKind($0, file["kinds"]?[$0.name] ?? .null) }
    }

    private init(_ kind: KindDeclaration, _ source: SchemaValue) {
        name = kind.name
        description = source["description"]?.text
        fields = TypedField.all(of: kind.fields, source)
        let created = kind.fieldNames(.create)
        // A class where no person may write all required fields has no new objects.
        newRealms = KindDeclaration.RealmName.allCases.filter {
            created[$0]?.isSuperset(of: kind.fields.required) == true
        }
        let names = newRealms.reduce(into: Set<String>()) { $0.formUnion(created[$1] ?? []) }
        let new = fields.filter { names.contains($0.name) }
        newFields = new.filter(\.isRequired) + new.filter { !$0.isRequired }
        let changed = kind.fieldNames(.change).values.reduce(into: Set<String>()) { $0.formUnion($1) }
        changedFields = fields.filter { changed.contains($0.name) }
        isDeletable = !kind.fieldNames(.delete).isEmpty
        blobPaths = kind.fields.blobPaths
    }
}

extension KindDeclaration {
    /// Returns the fields that any person may write in an act, by class of realm. Classes without such people are
    /// absent.
    fileprivate func fieldNames(_ act: Act) -> [RealmName: Set<String>] {
        var names: [RealmName: Set<String>] = [:]
        for realm in RealmName.allCases {
            for writer in Writer.allCases {
                guard let fields = fields(of: writer, act, in: realm) else { continue }
                names[realm, default: []].formUnion(fields)
            }
        }
        return names
    }
}

/// A member of an object.
struct TypedField: Sendable {
    let name: String
    let description: String?
    let type: FieldType
    /// Whether each object has it.
    let isRequired: Bool

    /// Returns the members that a schema declares or requires.
    static func all(of schema: ValueSchema, _ source: SchemaValue) -> [TypedField] {
        let sources = source["properties"]?.members ?? []
        let declared = zip(schema.properties, sources).map { property, source in
            TypedField(
                name: property.name, description: source.value["description"]?.text,
                type: FieldType(property.schema, source.value),
                isRequired: schema.required.contains { $0.utf8.elementsEqual(property.name.utf8) })
        }
        let others = schema.required.filter { schema.property($0) == nil }
        let type = FieldType.ofOthers(schema, source)
        return declared + others.map { TypedField(name: $0, description: nil, type: type, isRequired: true) }
    }
}

/// The type of a field's values.
struct FieldType: Sendable {
    indirect enum Form: Sendable {
        case text, boolean, integer, number, uuid, day, time
        /// Any JSON value.
        case any
        /// A string with one of these values.
        case choice([String])
        case list(of: FieldType)
        /// An object whose member names are data.
        case map(of: FieldType)
        case object([TypedField])
    }

    let form: Form
    /// Whether null is one of the values, in addition to those of the form.
    let isNullable: Bool

    private static let any = FieldType(form: .any, isNullable: false)

    private init(form: Form, isNullable: Bool) { (self.form, self.isNullable) = (form, isNullable) }

    /// Creates the type of a schema's values.
    ///
    /// - Parameter source: The schema in the file, for descriptions.
    init(_ schema: ValueSchema, _ source: SchemaValue) {
        form = Self.form(schema, source)
        if case .any = form {
            isNullable = false
        } else {
            isNullable = schema.types?.contains(.null) != false && schema.values?.contains(.null) != false
        }
    }

    /// Returns the type of the members that a schema does not name.
    static func ofOthers(_ schema: ValueSchema, _ source: SchemaValue) -> FieldType {
        guard case .matching(let schemas) = schema.additional, let other = schemas.first else { return .any }
        return FieldType(other, source["additionalProperties"] ?? .null)
    }

    private static func form(_ schema: ValueSchema, _ source: SchemaValue) -> Form {
        let values = schema.values?.filter { $0 != .null }
        switch schema.types?.subtracting([.null]) ?? values.flatMap(types) {
        case [.string]:
            if let texts = values?.compactMap(\.text) { return .choice(texts) }
            return switch schema.format {
            case .uuid: .uuid
            case .date: .day
            case .dateTime: .time
            case nil: .text
            }
        case [.boolean]: return .boolean
        case [.integer]: return .integer
        case [.number], [.integer, .number]: return .number
        case [.array]: return .list(of: schema.items.first.map { FieldType($0, source["items"] ?? .null) } ?? .any)
        case [.object]:
            let fields = TypedField.all(of: schema, source)
            return fields.isEmpty ? .map(of: .ofOthers(schema, source)) : .object(fields)
        default: return .any
        }
    }

    /// Returns the types of the values of an `enum` without `type`.
    private static func types(of values: [SchemaValue]) -> Set<ValueSchema.ValueType> {
        Set(
            values.map { value in
                switch value {
                case .null: .null
                case .bool: .boolean
                case .integer: .integer
                case .large, .number: .number
                case .text: .string
                case .list: .array
                case .object: .object
                }
            })
    }
}

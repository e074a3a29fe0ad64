import BackendHTTP
import BackendProtocol

/// What an environment can say about one kind of back end: the lists of choices and the fields of its records that
/// templates are made of, and the adapter's settings.
package struct BackendVocabulary: Sendable {
    /// A list that the adapter reads from the back end.
    struct List: Sendable {
        let name: String
        /// The name of its tree's root.
        let root: String
        /// The list of which a choice comes before: those of this list depend on it.
        var after: String?
        /// The field that holds a choice of this list, if one does.
        var field: String?
    }

    /// A field of the back end's records.
    struct Field: Sendable {
        let name: String
        /// How long a reference may be, in characters.
        let lengthMax: Int
        var isNumber = false
        /// Whether every record has it.
        var isRequired = false
    }

    /// The kind of back end, as in `environment add --backend`.
    package let backend: String
    let lists: [List]
    let fields: [Field]
    /// The templates of an environment that declares none.
    package let builtIn: TemplateDeclarations
    /// The adapter's settings.
    package let settings: [BackendSetting]

    package var listNames: [String] { lists.map(\.name) }
    package var fieldNames: [String] { fields.map(\.name) }

    func list(named name: String) -> List? { lists.first { $0.name == name } }

    func field(named name: String) -> Field? { fields.first { $0.name == name } }
}

/// The names of an environment's contexts, and the fields of the back end's records that they stand for.
struct FieldNames: Sendable {
    /// `nil` for a name that stands for none.
    private var fieldByName: [String: String?] = [:]
    private var nameByField: [String: String] = [:]
    /// References of declared choices by field, and the same by themselves without leading zeros.
    private var declared: [String: Set<String>] = [:]
    private var byNumber: [String: [Substring: String]] = [:]
    /// What the adapter puts into a field when nobody chose anything for it.
    private let defaults: [String: String]

    init(_ declarations: TemplateDeclarations, defaults: [String: String] = [:]) {
        self.defaults = defaults
        for context in declarations.templates.flatMap(\.contexts) {
            fieldByName.updateValue(context.field, forKey: context.name)
            guard let field = context.field else { continue }
            nameByField[field] = context.name
            for node in declarations.list(named: context.list)?.allNodes ?? [] {
                declared[field, default: []].insert(node.referenceId)
                byNumber[field, default: [:]][Self.stripped(node.referenceId)] = node.referenceId
            }
        }
    }

    var fields: Set<String> { Set(nameByField.keys) }
    /// The names that stand for fields.
    var names: [String] { nameByField.values.sorted() }

    /// - Returns: `nil` for a name that stands for no field.
    /// - Throws: For a name that is not declared: the person's choices are of templates from before.
    func field(of name: String) throws(BackendError) -> String? {
        guard let field = fieldByName[name] else {
            let reason = "'\(BackendMessage.bounded(name))' is of none of the environment's templates any more"
            throw .notProcessed(reason: reason, retryAfter: nil)
        }
        return field
    }

    func name(of field: String) -> String? { nameByField[field] }

    /// The name under which a record's value is told; `nil` when it is not.
    func name(of value: String, in field: String) -> String? { defaults[field] == value ? nil : nameByField[field] }

    /// The reference that a record's value is. Numbers are padded with zeros in some answers, and not in others.
    func reference(of value: String, in field: String) -> String {
        if declared[field]?.contains(value) ?? false { return value }
        return byNumber[field]?[Self.stripped(value)] ?? value
    }

    /// Without the zeros before a number.
    static func stripped(_ value: String) -> Substring {
        value.utf8.allSatisfy { (48...57).contains($0) } ? value.drop { $0 == "0" } : value[...]
    }
}

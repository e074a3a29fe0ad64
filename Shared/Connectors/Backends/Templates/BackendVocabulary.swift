import BackendHTTP
import BackendProtocol

/// The lists of choices, the record fields and the adapter settings of a kind of back end that an environment's
/// templates and settings can refer to.
package struct BackendVocabulary: Sendable {
    /// A list of choices that the adapter reads from the back end.
    struct List: Sendable {
        let name: String
        /// The name of its tree's root.
        let root: String
        /// The list that must be selected from first, because choices of this list depend on it.
        var after: String?
        /// The field that stores a choice of this list, if any.
        var field: String?
    }

    /// A field of the back end's records.
    struct Field: Sendable {
        let name: String
        /// Maximum length of a reference in characters.
        let lengthMax: Int
        var isNumber = false
        /// Whether every record has the field.
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

/// The mapping between context names and fields of the back end's records.
struct FieldNames: Sendable {
    /// `nil` for a name without a field.
    private var fieldByName: [String: String?] = [:]
    private var nameByField: [String: String] = [:]
    /// References of declared choices by field, and the same references by their form without leading zeros.
    private var declared: [String: Set<String>] = [:]
    private var byNumber: [String: [Substring: String]] = [:]
    /// Values that the adapter writes into fields without a choice.
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
    /// The names that have a field.
    var names: [String] { nameByField.values.sorted() }

    /// - Returns: `nil` for a name without a field.
    /// - Throws: `notProcessed` for an undeclared name: the person's choices were made with earlier templates.
    func field(of name: String) throws(BackendError) -> String? {
        guard let field = fieldByName[name] else {
            let reason = "'\(BackendMessage.truncated(name))' is not part of the environment's templates any more"
            throw .notProcessed(reason: reason, retryAfter: nil)
        }
        return field
    }

    func name(of field: String) -> String? { nameByField[field] }

    /// Returns the context name for a record's value; `nil` for a default value or a field without a name.
    func name(of value: String, in field: String) -> String? { defaults[field] == value ? nil : nameByField[field] }

    /// Returns the declared reference for a record's value. Some responses pad numbers with zeros, others do not.
    func reference(of value: String, in field: String) -> String {
        if declared[field]?.contains(value) ?? false { return value }
        return byNumber[field]?[Self.stripped(value)] ?? value
    }

    /// Removes leading zeros from a number.
    static func stripped(_ value: String) -> Substring {
        value.utf8.allSatisfy { (48...57).contains($0) } ? value.drop { $0 == "0" } : value[...]
    }
}

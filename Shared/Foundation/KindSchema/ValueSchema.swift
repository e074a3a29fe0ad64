/// The supported part of JSON Schema (draft 2020-12), compiled.
///
/// The keywords are those of ``keywords``; ``annotations`` do not affect values. `format` is asserted. `$ref` is not
/// supported, so that a schema is not recursive.
package struct ValueSchema: Equatable, Sendable {
    /// A type of JSON values. Whole numbers are both an `integer` and a `number`.
    package enum ValueType: String, CaseIterable, Sendable {
        case null, boolean, integer, number, string, array, object
    }

    /// A format that texts must have.
    package enum Format: String, CaseIterable, Sendable {
        /// RFC 3339: `2026-11-27`.
        case date
        /// RFC 3339: `2026-11-27T18:49:06Z`.
        case dateTime = "date-time"
        /// RFC 4122, in lower or upper case.
        case uuid
    }

    /// A field of an object.
    package struct Property: Equatable, Sendable {
        package let name: String
        package let schema: ValueSchema
    }

    /// The members that `properties` does not name.
    package enum Additional: Equatable, Sendable {
        case allowed
        case refused
        case matching([ValueSchema])
    }

    /// Permitted types; `nil`: all.
    package var types: Set<ValueType>?
    /// Permitted values; `nil`: all. `const` is a list of one.
    package var values: [SchemaValue]?
    package var format: Format?
    package var pattern: Pattern?
    package var lengthMin: Int64?
    package var lengthMax: Int64?
    package var minimum: SchemaValue?
    package var maximum: SchemaValue?
    /// The schema of a list's elements; at most one.
    package var items: [ValueSchema] = []
    package var countMax: Int64?
    package private(set) var properties: [Property] = []
    package var required: [String] = []
    package var additional = Additional.allowed
    /// The target of a reference: a kind of the file, a built-in kind, or one of ``blobReferences``. Not a keyword of
    /// JSON Schema.
    package var reference: String?
    /// Whether only integrations write it.
    package var isReadOnly = false

    /// The values of `references` for an uploaded image, and for an uploaded image or document.
    package static let blobReferences = ["image", "file"]

    /// The keywords that affect values.
    package static let keywords = [
        "type", "enum", "const", "format", "pattern", "minLength", "maxLength", "minimum", "maximum", "items",
        "maxItems", "properties", "required", "additionalProperties", "references", "readOnly",
    ]
    /// Keywords that are kept for readers only.
    package static let annotations = ["title", "description", "default", "examples", "deprecated", "$comment"]

    /// Returns a property's schema.
    package func property(_ name: String) -> ValueSchema? {
        guard propertyIndexes.isEmpty else { return propertyIndexes[ScalarText(name)].map { properties[$0].schema } }
        return properties.first { $0.name.utf8.elementsEqual(name.utf8) }?.schema
    }

    /// The indexes of the properties by their names; empty if there are few, which need no index.
    private var propertyIndexes: [ScalarText: Int] = [:]
    private static let unindexedCountMax = 16

    /// - Parameter list: Properties with different names.
    mutating func setProperties(_ list: [Property]) {
        properties = list.map(\.self)
        guard list.count > Self.unindexedCountMax else { return }
        for (index, property) in list.enumerated() { propertyIndexes[ScalarText(property.name)] = index }
    }

    // MARK: References to blobs

    /// A step from a value to those in it.
    package enum PathStep: Equatable {
        case member(String)
        /// Each member of an object, except those of these names.
        case others([String])
        /// Each element of a list.
        case element
    }

    /// The paths of the references to images and documents.
    package var blobPaths: [[PathStep]] {
        if let reference, Self.blobReferences.contains(reference) { return [[]] }
        var steps = items.map { (PathStep.element, $0) }
        if case .matching(let others) = additional { steps += others.map { (.others(properties.map(\.name)), $0) } }
        steps += properties.map { (.member($0.name), $0.schema) }
        return steps.flatMap { step, schema in schema.blobPaths.map { [step] + $0 } }
    }

    // MARK: Validation

    /// Returns the first problems of a value, in its order; missing members of an object come first.
    ///
    /// - Parameter countMax: The maximum number of problems.
    package func problems(of value: SchemaValue, countMax: Int = 10) -> [SchemaProblem] {
        ValueCheck.problems(of: value, self, countMax: countMax)
    }
}

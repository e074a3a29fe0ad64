/// A property of a class in Realm's own form: `"string?"`, `"Person[]"`, or an object with `type` and `objectType`.
struct RealmProperty {
    /// The schema in the form of App Services; `nil` for the opposite side of a link.
    let schema: SchemaValue?
    /// The class of a link.
    let target: String?
    let isOptional: Bool

    /// A member of the schema of elements that may be null; App Services has no such keyword.
    static let nullable = "nullable"

    private static let types = [
        "bool": "bool", "int": "int", "float": "double", "double": "double", "string": "string", "date": "date",
        "data": "binData", "objectId": "objectId", "uuid": "uuid", "decimal128": "decimal", "mixed": "mixed",
    ]

    init?(_ value: SchemaValue) {
        guard var type = value.text ?? value["type"]?.text else { return nil }
        var element = value["objectType"]?.text
        var isOptional = value["optional"] == .bool(true)
        if type.hasSuffix("?") {
            isOptional = true
            type.removeLast()
        }
        for (ending, container) in [("[]", "list"), ("<>", "set"), ("{}", "dictionary")] where type.hasSuffix(ending) {
            element = String(type.dropLast(2))
            type = container
        }
        let isContainer = ["list", "set", "dictionary"].contains(type)
        // In Realm, the option of a container is that of its elements.
        var isElementOptional = isContainer && isOptional
        if element?.hasSuffix("?") == true {
            element?.removeLast()
            isElementOptional = true
        }
        self.isOptional = !isContainer && (isOptional || type == "object" || Self.types[type] == nil && element == nil)
        let isLink = element.map { Self.types[$0] == nil } ?? (Self.types[type] == nil)
        target = isLink ? element ?? type : nil
        let inner = SchemaValue.object(
            [.init("bsonType", .text(isLink ? "uuid" : Self.types[element ?? type] ?? "mixed"))]
                + (isElementOptional ? [.init(Self.nullable, .bool(true))] : []))
        switch type {
        case "linkingObjects": schema = nil
        case "list": schema = .object([.init("bsonType", .text("array")), .init("items", inner)])
        case "set":
            schema = .object(
                [.init("bsonType", .text("array")), .init("uniqueItems", .bool(true)), .init("items", inner)])
        case "dictionary":
            schema = .object([.init("bsonType", .text("object")), .init("additionalProperties", inner)])
        default: schema = inner
        }
    }
}

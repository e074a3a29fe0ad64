/// The form of a field's value in JSON.
package enum FieldForm: Equatable, Sendable {
    case text
    case boolean
    case integer
    case number
    /// A list or an object.
    case structure(FieldStructure)

    /// Returns the form of an object with these members, in this order.
    static func object(_ members: KeyValuePairs<String, FieldForm>) -> FieldForm {
        .structure(.object(members.map { FieldStructure.Member(name: $0.key, form: $0.value) }))
    }

    /// Returns the form of a list of values.
    static func list(of element: FieldForm) -> FieldForm { .structure(.list(of: element)) }

    /// Returns the form of an object whose member names are data.
    static func map(of value: FieldForm) -> FieldForm { .structure(.map(of: value)) }

    /// The form of a list of ids or other texts.
    static let texts = list(of: .text)
}

/// The content of a list or an object.
package indirect enum FieldStructure: Equatable, Sendable {
    /// A member of an object.
    package struct Member: Equatable, Sendable {
        package let name: String
        package let form: FieldForm

        package init(name: String, form: FieldForm) { (self.name, self.form) = (name, form) }
    }

    /// An object with these members.
    case object([Member])
    /// A list of values of one form.
    case list(of: FieldForm)
    /// An object whose member names are data, with values of one form.
    case map(of: FieldForm)
}

extension Kind {
    /// Returns the form of a field.
    package func form(of field: String) -> FieldForm {
        if case .own(let kind) = self { return kind.form(of: field) }
        return Self.forms[self]?[field] ?? .text
    }

    private static let forms = Dictionary(uniqueKeysWithValues: allCases.map { ($0, $0.forms) })

    /// The fields that are not texts. A test compares them with `deploy/openapi.yaml`.
    private var forms: [String: FieldForm] {
        switch self {
        case .realms: ["isInitialized": .boolean]
        case .user: ["reportingTemplates": .texts]
        case .reportingTreeNode: ["hasDependencies": .boolean, "dependencies": .texts]
        case .reportingContext:
            [
                "required": .boolean, "preselected": .texts, "visible": .boolean, "readOnly": .boolean,
                "sections": .list(
                    of: .object(["name": .text, "showCount": .integer, "items": .texts, "rootNode": .text])),
            ]
        case .reportingTemplate: ["reportingContexts": .texts]
        case .timeEntry:
            [
                "reporting": .list(of: .object(["context": .text, "node": .text])), "durationSeconds": .integer,
                "submitRequested": .boolean, "deleteRequested": .boolean,
            ]
        case .location: ["latitude": .number, "longitude": .number, "accuracy": .number]
        case .fieldTask: ["place": Self.taskLocation, "isCompleted": .boolean]
        case .appointment, .endedShare: ["durationMinutes": .integer]
        case .note: ["isTask": .boolean, "isDone": .boolean]
        case .deletedObject: ["durationMinutes": .integer, "isTask": .boolean, "isDone": .boolean]
        case .notice: ["isRead": .boolean]
        case .deliveryChoice:
            [
                "email": .boolean, "excludedCodes": .texts,
                "pushes": .list(of: .object(["endpoint": .text, "p256dh": .text, "auth": .text])),
                "devices": .list(of: .object(["service": .text, "token": .text, "device": .text])),
            ]
        case .defect: ["isAssignedToMe": .boolean, "isReportedByMe": .boolean]
        case .defectCommand:
            [
                "fields": .map(of: .text), "base": .map(of: .text), "choicesOf": .texts, "fromRow": .integer,
                "submitRequested": .boolean, "messages": .texts, "choices": .map(of: .texts),
                "detail": Self.defectDetail,
            ]
        default: [:]
        }
    }

    private static let taskLocation = FieldForm.object([
        "latitude": .number, "longitude": .number, "title": .text, "street": .text, "city": .text, "postalCode": .text,
        "state": .text, "countryCode": .text,
    ])

    private static let defectDetail = FieldForm.object([
        "readAt": .text,
        "fields": .list(
            of: .object([
                "name": .text, "type": .text, "requiredness": .text, "value": .text, "isTruncated": .boolean,
                "choices": .texts,
            ])),
        "actions": .list(of: .object(["operation": .text, "name": .text, "state": .text])),
        "items": .list(of: .object(["id": .text, "name": .text, "folder": .text, "isFolder": .boolean])),
        "columns": .texts,
        "rows": .list(of: .texts),
        "nextRow": .integer,
    ])
}

import HTTPTypes
import Hummingbird

/// Record types, records and their fields.
extension CompassEmulator {
    /// `{"fields": [{"name": …, "value": …}]}`, or nothing.
    private struct Fields: Decodable {
        struct Field: Decodable {
            let name: String
            let value: String?
        }

        let fields: [Field]?

        var values: [String: String] {
            Dictionary((fields ?? []).map { ($0.name, $0.value ?? "") }) { $1 }
        }
    }

    func records(_ call: CompassCall) async throws -> Response {
        let words = call.words
        guard words.count > 1, words[1].lowercased() == CompassSchema.recordType.lowercased() else {
            throw CompassRules.Refusal("The record type was not found.", .notFound)
        }
        switch (call.method, words.count) {
        case (.get, 2):
            system.count("typeReads")
            return .json(.ok, Self.typeJSON)
        case (.get, 3):
            system.count("recordReads")
            return .json(.ok, Self.json(try view(call)))
        case (.get, 5) where words[3] == "fields":
            system.count("fieldReads")
            let view = try view(call)
            guard let field = CompassSchema.fieldsByName[words[4]] else {
                throw CompassRules.Refusal("The field \(words[4]) was not found.", .notFound)
            }
            return .json(.ok, Self.json(field, view, withChoices: true))
        case (.post, 2): return try await create(call)
        case (.patch, 3): return try await change(call)
        case (.delete, 3):
            system.count("deletes")
            return try await write(call.context) { [system] isTrial in
                try system.withState {
                    try $0.delete(words[2], call.parameter("actionName"), by: call.user, isTrial: isTrial)
                }
                return Response(status: .noContent)
            }
        default: return Self.notFound
        }
    }

    private func view(_ call: CompassCall) throws -> CompassView {
        try system.withState { try $0.view(call.words[2], call.user) }
    }

    private func create(_ call: CompassCall) async throws -> Response {
        guard call.parameter("operation") == "Edit" else {
            throw CompassRules.Refusal("A record is made with operation=Edit, and then Commit.")
        }
        system.count("creates")
        return try await write(call.context) { [system] isTrial in
            let view = try system.withState { try $0.create(by: call.user, isTrial: isTrial) }
            return .json(.created, Self.json(view))
        }
    }

    private func change(_ call: CompassCall) async throws -> Response {
        let id = call.words[2]
        let values = try await call.body(as: Fields.self).values
        let (operation, action) = (call.parameter("operation") ?? "", call.parameter("actionName"))
        guard ["Edit", "Commit", "Revert"].contains(operation) else {
            throw CompassRules.Refusal("There is no operation \"\(operation)\".")
        }
        system.count(operation == "Edit" ? "edits" : operation == "Commit" ? "commits" : "reverts")
        return try await write(call.context) { [system] isTrial in
            let view = try system.withState { state -> CompassView? in
                switch operation {
                case "Edit": return try state.edit(id, action, values, by: call.user, isTrial: isTrial)
                case "Commit": return try state.commit(id, values, by: call.user, isTrial: isTrial)
                default:
                    try state.revert(id, by: call.user, isTrial: isTrial)
                    // What is left of a new record is nothing to show.
                    return try? state.view(id, call.user)
                }
            }
            return .json(.ok, view.map { Self.json($0) } ?? ["fields": []])
        }
    }

    // MARK: JSON

    private static func json(_ view: CompassView) -> JSON {
        let fields = view.isShuffled ? CompassSchema.fields.reversed() : CompassSchema.fields
        return ["fields": .array(fields.map { json($0, view, withChoices: false) })]
    }

    private static func json(_ field: CompassSchema.FieldDefinition, _ view: CompassView, withChoices: Bool) -> JSON {
        let value = view.value(field.name)
        let requiredness = JSON.string(CompassRules.requiredness(field.name, view.action, view.values))
        var fields: [(String, JSON)] = [
            ("name", .string(field.name)),
            ("value", field.name == view.unreadableField ? .texts([value]) : .string(value)),
            ("valueStatus", value.isEmpty ? "HAS_NO_VALUE" : "HAS_VALUE"), ("validationStatus", "_KNOWN_VALID"),
            ("requiredness", requiredness), ("requirednessForUser", requiredness), ("type", .string(field.type)),
            ("valueAsList", .texts(value.isEmpty ? [] : [value])), ("messageText", ""),
            ("maxLength", .number(field.lengthMax)),
        ]
        if withChoices {
            fields.append(
                ("fieldChoiceList", .texts(CompassRules.choices(field.name, view.values, view.choices) ?? [])))
        }
        return .object(fields)
    }

    private static let typeJSON: JSON = [
        "name": .string(CompassSchema.recordType), "dbId": "16777224", "type": "_REQ_ENTITY", "isFamily": false,
        "fieldDefs": .array(
            CompassSchema.fields.map { field in
                [
                    "name": .string(field.name), "type": .string(field.type), "helpText": "",
                    "requiredness": .string(CompassRules.requiredness(field.name, nil, [:])),
                ]
            }),
        "actions": .array(
            CompassSchema.actions.map { action in
                [
                    "name": .string(action.name), "actionType": .string(action.type),
                    "actionSourceStateNames": .texts(action.sources),
                    "actionDestStateName": .string(action.destination ?? ""),
                ]
            }),
    ]
}

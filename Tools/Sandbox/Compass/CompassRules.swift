/// The rules of the schema: mandatory fields, choices and actions.
enum CompassRules {
    /// A refusal, with its status.
    struct Refusal: Error, Equatable, CustomStringConvertible {
        enum Status: Int { case badRequest = 400, forbidden = 403, notFound = 404 }

        let status: Status
        let message: String

        var description: String { message }

        init(_ message: String, _ status: Status = .badRequest) {
            self.status = status
            self.message = message
        }
    }

    /// The choices of some fields: users, and projects with their components.
    typealias Choices = (users: [String], projects: [String: [String]])

    /// - Parameters:
    ///   - action: The current action; `nil`: the record is not being edited.
    ///   - values: The values in the edit session.
    static func requiredness(
        _ field: String, _ action: CompassSchema.Action?, _ values: [String: String]
    ) -> String {
        if CompassSchema.readOnly.contains(field) { return "READONLY" }
        if field == "Headline" || field == "Severity" || action?.mandatory.contains(field) == true {
            return "MANDATORY"
        }
        // What is critical has a priority: a field that becomes mandatory by the value of another.
        let isUrgent = action != nil && field == "Priority" && values["Severity"] == CompassSchema.severities[0]
        return isUrgent ? "MANDATORY" : "OPTIONAL"
    }

    /// - Returns: `nil` for a field that anything can be written into. A component is one of its project's.
    static func choices(_ field: String, _ values: [String: String], _ choices: Choices) -> [String]? {
        switch field {
        case "Severity", "customer_severity": CompassSchema.severities
        case "Priority": CompassSchema.priorities
        case "Resolution": CompassSchema.resolutions
        case "Owner": choices.users
        case "Project": choices.projects.keys.sorted()
        case "Component": choices.projects[values["Project"] ?? ""] ?? []
        default: nil
        }
    }

    /// The errors of the written values; none if they can be saved.
    static func problems(
        writing new: [String: String], over old: [String: String], _ action: CompassSchema.Action,
        _ known: Choices
    ) -> [String] {
        let values = old.merging(new) { $1 }
        var problems: [String] = []
        for (name, value) in new.sorted(by: { $0.key < $1.key }) {
            guard let field = CompassSchema.fieldsByName[name] else {
                problems.append("The field \"\(name)\" does not exist.")
                continue
            }
            if CompassSchema.readOnly.contains(name) { problems.append("The field \"\(name)\" is read-only.") }
            // Bytes of the database's encoding. Source: ClearQuest API Reference, GetFieldMaxLength.
            if field.lengthMax > 0, value.utf8.count > field.lengthMax {
                problems.append("The field \"\(name)\" has more than \(field.lengthMax) characters.")
            }
        }
        for field in CompassSchema.fields {
            let value = values[field.name] ?? ""
            if value.allSatisfy(\.isWhitespace) {
                guard requiredness(field.name, action, values) == "MANDATORY" else { continue }
                problems.append("The field \"\(field.name)\" is mandatory; a value must be specified.")
            } else if new[field.name] != nil || field.name == "Component",
                let list = choices(field.name, values, known), !list.contains(value)
            {
                problems.append("The field \"\(field.name)\" has a value that is not in its list: \(value)")
            }
        }
        return problems
    }

    /// - Throws: ``Refusal`` when there is no such action, or it cannot be done in this state.
    static func action(_ name: String?, from state: String) throws(Refusal) -> CompassSchema.Action {
        guard let action = CompassSchema.action(name ?? "Modify"), action.type != "_SUBMIT", action.type != "_DELETE"
        else { throw Refusal("The action \"\(name ?? "")\" does not exist.") }
        guard action.sources.contains(state) else {
            throw Refusal("The action \"\(action.name)\" is not allowed in the state \"\(state)\".")
        }
        return action
    }
}

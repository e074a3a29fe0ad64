import Model

/// Compares the desired values of a command with those of a record.
///
/// Values are texts, by the tracker's field names. A field that a record does not have is empty.
enum ComparisonRule {
    /// The tracker's name of the field that an action changes.
    static let state = "State"

    /// Returns the errors of a command that do not depend on the record.
    static func problems(of command: DefectCommand) -> [String] {
        var problems: [String] = []
        let isNamed = command.record.map { !isBlank($0) } ?? false
        switch command.operation {
        case .create:
            if isNamed { problems.append("'record' is not allowed for a new record") }
            if command.fields.isEmpty { problems.append("'fields' are missing") }
        case .modify:
            if !isNamed { problems.append("'record' is missing") }
            if command.fields.isEmpty { problems.append("'fields' are missing") }
        case .changeState:
            if !isNamed { problems.append("'record' is missing") }
            if command.actionName.map(isBlank) ?? true { problems.append("'actionName' is missing") }
        case .delete, .read:
            if !isNamed { problems.append("'record' is missing") }
        case .choices:
            if command.choicesOf.isEmpty { problems.append("'choicesOf' is missing") }
        case .form: break
        case .queries, .runQuery:
            if isNamed { problems.append("'record' is not allowed with '\(command.operation.rawValue)'") }
            let hasQuery = command.query.map { !isBlank($0) } ?? false
            if command.operation == .runQuery, !hasQuery { problems.append("'query' is missing") }
        }
        if command.operation.isReading, !leavesSpaceForDetail(command) {
            problems.append("'fields' and 'base' have more than the \(valueBytesMax) bytes of a read")
        }
        // The gateway rejects such commands. One from an earlier release or an import is rejected here.
        if let objection = command.objection { problems.append(objection) }
        return problems
    }

    /// Limit on the bytes of the values of a command with a detail: the rest of an object is for the detail.
    static let valueBytesMax = 8 * 1_024

    /// Whether an object has space for the command with a detail.
    static func leavesSpaceForDetail(_ command: DefectCommand) -> Bool {
        let values = [command.fields, command.base].joined()
        return values.reduce(0) { $0 + $1.key.jsonByteCount + $1.value.jsonByteCount } <= valueBytesMax
    }

    /// Whether a record already has the desired values.
    static func hasDesiredValues(_ fields: [String: String], _ record: [String: String]) -> Bool {
        fields.allSatisfy { isSame($0.value, record[$0.key] ?? "") }
    }

    /// Returns a message for each field that has neither the value of `base` nor the desired one, in the order of field
    /// names.
    static func conflicts(base: [String: String], desired: [String: String], _ record: [String: String]) -> [String] {
        base.sorted { $0.key < $1.key }.compactMap { name, seen in
            let now = record[name] ?? ""
            if isSame(seen, now) || desired[name].map({ isSame($0, now) }) == true { return nil }
            let request = desired[name].map { "; requested: \(quoted($0))" } ?? ""
            return "\(name) is now \(quoted(now)), not \(quoted(seen))" + request
        }
    }

    /// Returns a message for each mandatory field that would be blank.
    ///
    /// - Parameter mandatory: The mandatory fields with their current values.
    static func missing(_ mandatory: [String: String], desired: [String: String]) -> [String] {
        mandatory.filter { isBlank(desired[$0.key] ?? $0.value) }.keys.sorted().map { "\($0) must have a value" }
    }

    /// The tracker returns texts of several lines with other line ends.
    private static func isSame(_ left: String, _ right: String) -> Bool {
        left == right || lines(left) == lines(right)
    }

    private static func lines(_ text: String) -> String {
        var lines = text.replacing("\r\n", with: "\n").replacing("\r", with: "\n")[...]
        while lines.last?.isWhitespace == true { lines.removeLast() }
        return String(lines)
    }

    private static func isBlank(_ text: String) -> Bool { text.allSatisfy(\.isWhitespace) }

    /// Quotes a value, truncated to 100 characters.
    private static func quoted(_ text: String) -> String {
        text.isEmpty
            ? "empty" : "'\(text.unicodeScalars.count > 100 ? String(text.unicodeScalars.prefix(99)) + "…" : text)'"
    }
}

import Model

/// What a command wants of a record, compared with what the record is.
///
/// Values are texts, by the tracker's names of the fields. A field that a record does not have is empty.
enum ComparisonRule {
    /// The tracker's name of the field that an action changes.
    static let state = "State"

    /// What is wrong with a command, whatever the record is; none when it can be tried.
    static func problems(of command: DefectCommand) -> [String] {
        var problems: [String] = []
        let isNamed = command.record.map { !isBlank($0) } ?? false
        switch command.operation {
        case .create:
            if isNamed { problems.append("A new record has no 'record' yet") }
            if command.fields.isEmpty { problems.append("'fields' are missing") }
        case .modify:
            if !isNamed { problems.append("'record' is missing") }
            if command.fields.isEmpty { problems.append("'fields' are missing") }
        case .changeState:
            if !isNamed { problems.append("'record' is missing") }
            if command.actionName.map(isBlank) ?? true { problems.append("'actionName' is missing") }
        case .delete:
            if !isNamed { problems.append("'record' is missing") }
        case .choices:
            if command.choicesOf.isEmpty { problems.append("'choicesOf' is missing") }
        }
        // The gateway refuses it; one that an older one took, or that was imported, ends here.
        if let objection = command.objection { problems.append(objection) }
        return problems
    }

    /// Whether a record has the wanted values already.
    static func isAsWanted(_ fields: [String: String], _ record: [String: String]) -> Bool {
        fields.allSatisfy { isSame($0.value, record[$0.key] ?? "") }
    }

    /// Where a record is neither as its person saw it nor as they want it: one message for each field, in the order of
    /// their names.
    static func conflicts(
        base: [String: String], wanted: [String: String], _ record: [String: String]
    ) -> [String] {
        base.sorted { $0.key < $1.key }.compactMap { name, seen in
            let now = record[name] ?? ""
            if isSame(seen, now) || wanted[name].map({ isSame($0, now) }) == true { return nil }
            let rest = wanted[name].map { "; wanted was \(quoted($0))" } ?? ""
            return "\(name) is \(quoted(now)) by now, and not \(quoted(seen)) any more" + rest
        }
    }

    /// The fields that must have a value and would have none.
    ///
    /// - Parameter mandatory: Those that must, with the values that they have.
    static func missing(_ mandatory: [String: String], wanted: [String: String]) -> [String] {
        mandatory.filter { isBlank(wanted[$0.key] ?? $0.value) }.keys.sorted().map { "\($0) must have a value" }
    }

    /// Texts of several lines come back with other line ends.
    private static func isSame(_ left: String, _ right: String) -> Bool {
        left == right || lines(left) == lines(right)
    }

    private static func lines(_ text: String) -> String {
        var lines = text.replacing("\r\n", with: "\n").replacing("\r", with: "\n")[...]
        while lines.last?.isWhitespace == true { lines.removeLast() }
        return String(lines)
    }

    private static func isBlank(_ text: String) -> Bool { text.allSatisfy(\.isWhitespace) }

    /// A message names values, and not whole descriptions.
    private static func quoted(_ text: String) -> String {
        text.isEmpty
            ? "empty" : "'\(text.unicodeScalars.count > 100 ? String(text.unicodeScalars.prefix(99)) + "…" : text)'"
    }
}

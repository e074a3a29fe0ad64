/// A declared configuration value.
///
/// A setting has one name in three spellings: the dotted key `database.url`, the environment variable
/// `FIELDPOST_DATABASE_URL`, and the key of the configuration file, `{"database": {"url": …}}` or
/// `{"database.url": …}`.
package struct Setting: Sendable, Equatable {
    /// The kind of a value. Every kind is limited.
    package enum Kind: Sendable, Equatable {
        case text(lengthMax: Int)
        case integer(ClosedRange<Int>)
        /// A whole number with its unit: `500ms`, `30s`, `5m`, `2h`, `1d`.
        case duration(ClosedRange<Duration>)
        case flag
        case choice([String])
        /// Texts separated by commas; an array in a file.
        case list(countMax: Int)
        /// All keys that begin with the setting's key and a dot, passed on unchanged.
        case properties
    }

    /// Lower-case terms joined by dots.
    package let key: String
    package let kind: Kind
    /// The default; `nil` for a required setting, an empty text for "none".
    package let defaultText: String?
    /// Whether the value is secret: it is never printed or logged.
    package let isSecret: Bool
    /// One line for `--help`, `docs/operators/configuration.md` and the error of a missing value: the purpose and, for
    /// a number, the unit.
    package let help: String

    package init(
        _ key: String, _ kind: Kind, default defaultText: String?, isSecret: Bool = false, help: String
    ) {
        // Variables' names are case-insensitive here: a key with capitals could not be set from the environment.
        precondition(key == key.lowercased(), "\(key) must be in lower case")
        self.key = key
        self.kind = kind
        self.defaultText = defaultText
        self.isSecret = isSecret
        self.help = help
        if let defaultText, let problem = self.problem(with: defaultText) {
            preconditionFailure("the default of \(key): \(problem)")
        }
    }

    /// The default of an integer setting; traps for a setting of another kind.
    package var defaultInteger: Int {
        guard case .integer = kind, let value = defaultText.flatMap({ Int($0) }) else {
            preconditionFailure("\(key) has no integer default")
        }
        return value
    }

    /// The default of a duration setting; traps for a setting of another kind.
    package var defaultDuration: Duration {
        guard case .duration = kind, let value = defaultText.flatMap({ Duration(settingText: $0) }) else {
            preconditionFailure("\(key) has no duration default")
        }
        return value
    }

    /// The environment variable of this setting.
    package var variable: String { Self.variable(for: key) }

    static let variablePrefix = "FIELDPOST_"

    static func variable(for key: String) -> String {
        variablePrefix + key.uppercased().map { $0 == "." ? "_" : String($0) }.joined()
    }

    static func key(for variable: String) -> String {
        variable.dropFirst(variablePrefix.count).lowercased().map { $0 == "_" ? "." : String($0) }.joined()
    }
}

extension Setting {
    /// Whether a library's property is secret. Properties are not declared individually; these terms occur in
    /// librdkafka's secret ones (`sasl.password`, `ssl.key.pem`, `sasl.oauthbearer.client.secret`, …).
    static func isLikelySecret(_ key: String) -> Bool {
        ["password", "secret", "pem", "token", "oauthbearer.config"].contains { key.contains($0) }
    }

    /// Describes why `text` is not a valid value of this setting; `nil` if it is.
    func problem(with text: String) -> String? {
        let isAllowed =
            switch kind {
            case .text(let lengthMax): text.utf8.count <= lengthMax
            case .integer(let range): Int(text).map(range.contains) ?? false
            case .duration(let range): Duration(settingText: text).map(range.contains) ?? false
            case .flag: Self.flag(text) != nil
            case .choice(let choices): choices.contains(text)
            case .list(let countMax): Self.list(text).count <= countMax
            case .properties: true
            }
        return isAllowed ? nil : "expected \(allowed)"
    }

    /// The allowed values, for error messages and `--help`.
    package var allowed: String {
        switch kind {
        case .text(let lengthMax): "a text of at most \(lengthMax) bytes"
        case .integer(let range): "an integer from \(range.lowerBound) to \(range.upperBound)"
        case .duration(let range):
            "a duration from \(range.lowerBound.settingText) to \(range.upperBound.settingText), such as 30s"
        case .flag: "true or false"
        case .choice(let choices): "one of " + choices.joined(separator: ", ")
        case .list(let countMax): "at most \(countMax) texts separated by commas"
        case .properties: "properties"
        }
    }

    static func flag(_ text: String) -> Bool? {
        switch text {
        case "true", "yes", "1": true
        case "false", "no", "0": false
        default: nil
        }
    }

    static func list(_ text: String) -> [String] {
        text.split(separator: ",").map { String($0.drop { $0 == " " }) }.map { item in
            var item = item
            while item.last == " " { item.removeLast() }
            return item
        }
        .filter { !$0.isEmpty }
    }
}

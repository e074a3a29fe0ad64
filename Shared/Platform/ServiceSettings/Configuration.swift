import Essentials
import FoundationEssentials

/// An invalid configuration, with a one-line message for the operator.
package struct ConfigurationError: Error, Equatable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// The values of a program's settings, read once at start from the environment, the file and the defaults, in this
/// order of precedence.
///
/// Not swift-configuration, which cannot report unused keys; a misspelt key must be an error.
package struct Configuration: Sendable {
    package enum Source: Sendable, Equatable, CustomStringConvertible {
        case environment
        case file(String)
        case defaultValue

        package var description: String {
            switch self {
            case .environment: "environment"
            case .file(let path): "file \(path)"
            case .defaultValue: "default"
            }
        }
    }

    struct Value: Sendable, Equatable {
        var text: String
        var source: Source
    }

    let settings: [Setting]
    let values: [String: Value]

    /// Reads and validates all values.
    ///
    /// - Parameters:
    ///   - settings: The program's settings. `Setting.shared` is accepted as well.
    ///   - environment: The process's environment, of which only `FIELDPOST_…` counts.
    ///   - file: A JSON file; the value of `FIELDPOST_CONFIG` if `nil`.
    /// - Throws: The first problem, in the order of keys.
    package init(
        _ settings: [Setting], environment: [String: String] = ProcessInfo.processInfo.environment,
        file: String? = nil
    ) throws(ConfigurationError) {
        var given: [String: (value: Value, name: String)] = [:]
        if let path = file ?? environment["FIELDPOST_CONFIG"] {
            for (key, text) in try ConfigurationFile.read(path) {
                given[key] = (Value(text: text, source: .file(path)), "\(key) in \(path)")
            }
        }
        for (name, text) in environment where name.hasPrefix(Setting.variablePrefix) && name != "FIELDPOST_CONFIG" {
            given[Setting.key(for: name)] = (Value(text: text, source: .environment), name)
        }
        let allowed = settings + Setting.shared.filter { shared in !settings.contains { $0.key == shared.key } }
        for (key, entry) in given.sorted(by: { $0.key < $1.key }) {
            try Self.check(key, entry.value.text, name: entry.name, allowed: allowed)
        }
        var values = given.mapValues(\.value)
        for setting in settings where values[setting.key] == nil && setting.kind != .properties {
            guard let text = setting.defaultText else {
                throw ConfigurationError("\(setting.variable) is not set: \(setting.help)")
            }
            values[setting.key] = Value(text: text, source: .defaultValue)
        }
        self.settings = settings
        self.values = values
    }

    private static func check(
        _ key: String, _ text: String, name: String, allowed: [Setting]
    ) throws(ConfigurationError) {
        if let setting = allowed.first(where: { $0.key == key && $0.kind != .properties }) {
            guard let problem = setting.problem(with: text) else { return }
            let value = setting.isSecret ? "<redacted>" : "\"\(oneLine(text))\""
            throw ConfigurationError("\(name) is \(value): \(problem)")
        }
        if allowed.contains(where: { $0.kind == .properties && key.hasPrefix($0.key + ".") }) { return }
        let isVariable = name.hasPrefix(Setting.variablePrefix)
        let names = allowed.map { isVariable ? $0.variable : $0.key }
        let nearest = nearest(to: isVariable ? name : key, among: names).map { "; did you mean \($0)?" } ?? ""
        throw ConfigurationError("\(name) is not a setting of this program\(nearest)")
    }

    private static func oneLine(_ text: String) -> String {
        let shown = text.unicodeScalars.prefix(80).map { $0.value < 0x20 || $0.value == 0x7F ? "?" : String($0) }
        return shown.joined() + (text.unicodeScalars.count > 80 ? "…" : "")
    }
}

extension Configuration {
    package func text(_ setting: Setting) throws(ConfigurationError) -> String {
        guard let value = values[setting.key], settings.contains(where: { $0.key == setting.key }) else {
            throw ConfigurationError("\(setting.key) is read by this program but not declared in its settings")
        }
        return value.text
    }

    /// Returns the value; `nil` if it is empty.
    package func optionalText(_ setting: Setting) throws(ConfigurationError) -> String? {
        let text = try text(setting)
        return text.isEmpty ? nil : text
    }

    package func integer(_ setting: Setting) throws(ConfigurationError) -> Int {
        try read(setting) { Int($0) }
    }

    package func duration(_ setting: Setting) throws(ConfigurationError) -> Duration {
        try read(setting) { Duration(settingText: $0) }
    }

    package func flag(_ setting: Setting) throws(ConfigurationError) -> Bool {
        try read(setting, as: Setting.flag)
    }

    package func list(_ setting: Setting) throws(ConfigurationError) -> [String] {
        try read(setting, as: Setting.list)
    }

    /// Returns the keys under a `.properties` setting that are not settings themselves, without the prefix.
    ///
    /// - Parameters:
    ///   - prefix: For example `kafka.`, which gives `["security.protocol": "SASL_SSL"]`.
    ///   - problem: Describes why the library rejects a property; `nil` if it accepts it.
    /// - Throws: The first problem, in the order of names.
    package func properties(
        under prefix: String, problem: (_ name: String, _ value: String) -> String?
    ) throws(ConfigurationError) -> [String: String] {
        var properties: [String: String] = [:]
        let declared = (settings + Setting.shared).map(\.key)
        for (key, value) in values.sorted(by: { $0.key < $1.key })
        where key.hasPrefix(prefix) && !declared.contains(key) {
            let name = String(key.dropFirst(prefix.count))
            if let problem = problem(name, value.text) {
                let setting =
                    switch value.source {
                    case .environment, .defaultValue: Setting.variable(for: key)
                    case .file(let path): "\(key) in \(path)"
                    }
                let shown = Setting.isLikelySecret(key) ? "<redacted>" : "\"\(Self.oneLine(value.text))\""
                throw ConfigurationError("\(setting) is \(shown): \(problem)")
            }
            properties[name] = value.text
        }
        return properties
    }

    private func read<T>(_ setting: Setting, as convert: (String) -> T?) throws(ConfigurationError) -> T {
        // All values were validated; this fails only for a setting that is read as a different kind than declared.
        guard let value = convert(try text(setting)) else {
            throw ConfigurationError("\(setting.key) is read by this program as a different kind than declared")
        }
        return value
    }
}

import FoundationEssentials

/// What a program can be told of a setting: an element of what `--print-settings` prints.
package struct SettingDescription: Encodable {
    let key: String
    let variable: String
    /// Left out where a value must be given; empty: none.
    let defaultValue: String?
    /// The allowed values, in words.
    let allowed: String
    let isSecret: Bool
    /// Whether services that do not have it pass over it.
    let isShared: Bool
    let help: String

    init(_ setting: Setting) {
        let isProperties = setting.kind == .properties
        key = setting.key + (isProperties ? ".*" : "")
        variable = setting.variable + (isProperties ? "_…" : "")
        defaultValue = setting.defaultText
        allowed = setting.allowed
        isSecret = setting.isSecret
        isShared = Setting.shared.contains(setting)
        help = setting.help
    }

    /// A JSON array, in the order of `settings`.
    package static func json(_ settings: [Setting]) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(settings.map(SettingDescription.init)), as: UTF8.self)
    }
}

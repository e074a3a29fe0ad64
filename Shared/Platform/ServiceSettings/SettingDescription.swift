import FoundationEssentials

/// The description of a setting in the output of `--print-settings`.
package struct SettingDescription: Encodable {
    let key: String
    let variable: String
    /// The default; absent for a required setting, empty for "none".
    let defaultValue: String?
    /// A description of the allowed values.
    let allowed: String
    let isSecret: Bool
    /// Whether services without the setting accept it.
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

    /// Encodes a JSON array in the order of `settings`.
    package static func json(_ settings: [Setting]) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(settings.map(SettingDescription.init)), as: UTF8.self)
    }
}

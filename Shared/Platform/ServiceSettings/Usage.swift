/// The output of `--help` and `--print-config`.
package enum Usage {
    package static func help(_ name: String, _ settings: [Setting]) -> String {
        var lines = [
            "usage: \(name) [--config FILE] [--print-config] [--print-settings] [--help] [--version]", "",
            "  --config FILE     read settings from a JSON file (also: FIELDPOST_CONFIG)",
            "  --print-config    print the effective values and their sources, then exit",
            "  --print-settings  print the supported settings as JSON, then exit",
            "  --help            print this help, then exit",
            "  --version         print the version, then exit", "",
            "Settings are read from the environment, then from the file (key database.url or",
            "{\"database\": {\"url\": …}}), then from the defaults.", "",
        ]
        for setting in settings {
            lines.append("  " + (setting.kind == .properties ? setting.variable + "_…" : setting.variable))
            lines.append("      \(setting.help)")
            if setting.kind == .properties { continue }
            let defaultText = setting.defaultText.map { $0.isEmpty ? "none" : $0 }
            lines.append("      \(setting.allowed); " + (defaultText.map { "default \($0)" } ?? "required"))
        }
        return lines.joined(separator: "\n")
    }

    package static func effective(_ configuration: Configuration) -> String {
        let rows = configuration.values.sorted { $0.key < $1.key }.filter { key, _ in
            let isShared = Setting.shared.contains { $0.key == key }
            return !isShared || configuration.settings.contains { $0.key == key }
        }
        let keyWidth = rows.map(\.key.count).max() ?? 0
        return rows.map { key, value in
            let isSecret = configuration.settings.first { $0.key == key }?.isSecret ?? Setting.isLikelySecret(key)
            let text = isSecret && !value.text.isEmpty ? "<redacted>" : value.text
            let padding = String(repeating: " ", count: keyWidth - key.count)
            return "\(key)\(padding) = \(text)  (\(value.source))"
        }
        .joined(separator: "\n")
    }
}

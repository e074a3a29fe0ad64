/// Names, labels and numbers of Prometheus' text format, version 0.0.4.
/// Source: prometheus.io/docs/instrumenting/exposition_formats.
enum PrometheusText {
    /// Returns the lines before a metric's values: TYPE, and HELP if there is a text.
    static func head(_ name: String, _ kind: String) -> String {
        let help = MetricsHelp.texts[name].map { "# HELP \(name) \($0)\n" } ?? ""
        return help + "# TYPE \(name) \(kind)\n"
    }

    /// Returns a metric's name: letters, digits, `_` and `:`, not beginning with a digit.
    static func name(_ label: String, suffix: String = "") -> String {
        let name = identifier(label, allowing: ":")
        return name.hasSuffix(suffix) ? name : name + suffix
    }

    /// Returns `{key="value",…}` sorted by key, or an empty text.
    static func labels(_ dimensions: [(String, String)]) -> String {
        guard !dimensions.isEmpty else { return "" }
        let sorted = dimensions.sorted { $0.0 < $1.0 }
        return "{" + sorted.map { "\(identifier($0.0))=\"\(escaped($0.1))\"" }.joined(separator: ",") + "}"
    }

    static func adding(_ key: String, _ value: String, to labels: String) -> String {
        labels.isEmpty ? "{\(key)=\"\(value)\"}" : labels.dropLast() + ",\(key)=\"\(value)\"}"
    }

    static func number(_ value: Double) -> String {
        if value.isNaN { return "NaN" }
        if value.isInfinite { return value < 0 ? "-Inf" : "+Inf" }
        return value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }

    private static func identifier(_ text: String, allowing extra: Unicode.Scalar? = nil) -> String {
        var identifier = ""
        for scalar in text.unicodeScalars {
            let isWord = scalar.isASCII && (scalar.properties.isAlphabetic || scalar.properties.numericType != nil)
            identifier.unicodeScalars.append(isWord || scalar == extra ? scalar : "_")
        }
        let startsWithDigit = identifier.unicodeScalars.first.map { $0.properties.numericType != nil } ?? true
        return startsWithDigit ? "_" + identifier : identifier
    }

    private static func escaped(_ text: String) -> String {
        var escaped = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\"": escaped += "\\\""
            case "\n": escaped += "\\n"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}

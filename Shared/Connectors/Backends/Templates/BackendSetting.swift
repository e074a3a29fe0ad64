import BackendProtocol

/// A setting of an adapter, as in `environment edit --backend-setting NAME=VALUE`.
public struct BackendSetting: Sendable {
    /// The allowed values.
    public enum Values: Sendable {
        /// A number in this range.
        case number(ClosedRange<Int>)
        /// A text with a maximum length in UTF-16 code units.
        case text(lengthMax: Int)
        /// One of these options.
        case option([String])
        /// Comma-separated texts.
        case texts
    }

    /// The name, unique in the kind of back end.
    public let name: String
    /// The description in help texts and documents.
    public let help: String
    let values: Values

    /// Creates a setting. A value that is not allowed is refused when an operator stores it.
    public init(name: String, help: String, values: Values) {
        self.name = name
        self.help = help
        self.values = values
    }

    /// Returns the reason why a value is invalid; `nil` if it is valid.
    package func problem(with value: String) -> String? {
        switch values {
        case .number(let range):
            if let number = Int(value), range.contains(number) { return nil }
            return "\(name) must be a number from \(range.lowerBound) to \(range.upperBound), not '\(value)'"
        case .text(let lengthMax):
            let length = value.utf16.count
            return length <= lengthMax ? nil : "\(name) must have at most \(lengthMax) characters, not \(length)"
        case .option(let options):
            return options.contains(value)
                ? nil : "\(name) must be one of \(options.joined(separator: ", ")), not '\(value)'"
        case .texts: return nil
        }
    }

    static let suggestionDays = BackendSetting(
        name: "suggestionDays", help: "past days whose entries determine suggestions", values: .number(1...366))
    static let suggestionsMax = BackendSetting(
        name: "suggestionsMax", help: "maximum number of different choices considered for suggestions",
        values: .number(0...100))
    static let pagesMax = BackendSetting(
        name: "pagesMax", help: "maximum number of pages of a listing; a longer one fails", values: .number(1...100_000)
    )
    static let textLengthMax = BackendSetting(
        name: "textLengthMax",
        help: "maximum length of an entry's text in textUnit, without the \(EntryMarker.length + 1) of the marker: "
            + "a truncated marker cannot be found", values: .number(1...1_000))
    static let textUnit = BackendSetting(
        name: "textUnit",
        help: "unit of textLengthMax: utf16 (UTF-16 code units), scalars (Unicode code points) or utf8 (bytes)",
        values: .option(TextLimit.Unit.allCases.map(\.rawValue)))
}

/// The adapter settings of an environment by name.
struct BackendSettingValues {
    let values: [String: String]

    /// Applies a number if the setting is present.
    func apply(_ setting: BackendSetting, to value: inout Int) {
        if let number = values[setting.name].flatMap({ Int($0) }) { value = number }
    }

    /// Applies the text limit and its unit if they are present.
    func apply(to limit: inout TextLimit) {
        apply(.textLengthMax, to: &limit.lengthMax)
        if let unit = values[BackendSetting.textUnit.name].flatMap(TextLimit.Unit.init(rawValue:)) { limit.unit = unit }
    }
}

import BackendProtocol

/// A setting of an adapter that an environment may have: what `environment edit --backend-setting NAME=VALUE` takes.
package struct BackendSetting: Sendable {
    /// What its values are.
    enum Values: Sendable {
        case number(ClosedRange<Int>)
        /// A text of at most this number of UTF-16 code units.
        case text(lengthMax: Int)
        /// One of these words.
        case word([String])
        /// Texts, separated by commas.
        case texts
    }

    package let name: String
    /// For a person.
    package let help: String
    let values: Values

    /// What is wrong with a value; `nil` when it can be used.
    package func problem(with value: String) -> String? {
        switch values {
        case .number(let range):
            if let number = Int(value), range.contains(number) { return nil }
            return "\(name) is a number from \(range.lowerBound) to \(range.upperBound), not '\(value)'"
        case .text(let lengthMax):
            let length = value.utf16.count
            return length <= lengthMax ? nil : "\(name) has at most \(lengthMax) characters, not \(length)"
        case .word(let words):
            return words.contains(value)
                ? nil : "\(name) is one of \(words.joined(separator: ", ")), not '\(value)'"
        case .texts: return nil
        }
    }

    static let suggestionDays = BackendSetting(
        name: "suggestionDays", help: "days whose entries suggestions are made of", values: .number(1...366))
    static let suggestionsMax = BackendSetting(
        name: "suggestionsMax", help: "how many choices are looked at for suggestions", values: .number(0...100))
    static let pagesMax = BackendSetting(
        name: "pagesMax", help: "pages of one listing; a longer one fails", values: .number(1...100_000))
    static let textLengthMax = BackendSetting(
        name: "textLengthMax",
        help: "length of an entry's text that the back end keeps, in textUnit, without the \(EntryMarker.length + 1) "
            + "of the marker behind it: one that is cut off cannot be found again", values: .number(1...1_000))
    static let textUnit = BackendSetting(
        name: "textUnit",
        help: "what the back end counts in: utf16 (UTF-16 code units), scalars (Unicode code points) or utf8 (bytes)",
        values: .word(TextLimit.Unit.allCases.map(\.rawValue)))
}

/// An adapter's settings as an environment has them, by name.
struct BackendSettingValues {
    let values: [String: String]

    /// Puts a number in its place, where there is one.
    func apply(_ setting: BackendSetting, to place: inout Int) {
        if let number = values[setting.name].flatMap({ Int($0) }) { place = number }
    }

    /// Puts a text limit in its place, as far as the settings say one.
    func apply(to limit: inout TextLimit) {
        apply(.textLengthMax, to: &limit.lengthMax)
        if let unit = values[BackendSetting.textUnit.name].flatMap(TextLimit.Unit.init(rawValue:)) { limit.unit = unit }
    }
}

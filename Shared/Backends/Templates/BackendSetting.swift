import BackendProtocol

/// A setting of an adapter that an environment may have: what `environment edit --backend-setting NAME=VALUE` takes.
package struct BackendSetting: Sendable {
    /// What its values are.
    enum Values: Sendable {
        case number(ClosedRange<Int>)
        /// A text of at most so many characters.
        case text(lengthMax: Int)
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
            return value.count <= lengthMax ? nil : "\(name) has at most \(lengthMax) characters, not \(value.count)"
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
        help: "characters of an entry's text that the back end keeps, without the \(EntryMarker.length + 1) of the "
            + "marker behind it: one that is cut off cannot be found again", values: .number(1...1_000))
}

/// An adapter's settings as an environment has them, by name.
struct BackendSettingValues {
    let values: [String: String]

    /// Puts a number in its place, where there is one.
    func apply(_ setting: BackendSetting, to place: inout Int) {
        if let number = values[setting.name].flatMap({ Int($0) }) { place = number }
    }
}

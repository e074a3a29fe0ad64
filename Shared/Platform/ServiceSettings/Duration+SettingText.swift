import Essentials

extension Duration {
    private static let units: [(suffix: String, milliseconds: Int64)] = [
        ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000),
    ]

    /// Parses a whole number with its unit: `500ms`, `30s`, `5m`, `2h`, `1d`.
    package init?(settingText text: String) {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let suffix = text.dropFirst(digits.count)
        guard let count = Int64(digits), let unit = Self.units.first(where: { $0.suffix == suffix }) else { return nil }
        let (milliseconds, overflow) = count.multipliedReportingOverflow(by: unit.milliseconds)
        guard !overflow else { return nil }
        self = .milliseconds(milliseconds)
    }

    /// The shortest text that `init(settingText:)` parses; fractions of a millisecond are truncated.
    package var settingText: String {
        let milliseconds = self.milliseconds
        // The largest unit without a remainder: "90s", not "1m 30s".
        let unit = Self.units.last { milliseconds % $0.milliseconds == 0 && milliseconds >= $0.milliseconds }
        guard let unit else { return "\(milliseconds)ms" }
        return "\(milliseconds / unit.milliseconds)\(unit.suffix)"
    }
}

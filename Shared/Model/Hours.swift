import Essentials

/// Hours with two decimals, as back ends record them; exact, because the value is a number of hundredths.
///
/// Seconds are rounded half up to a hundredth of an hour (36 s): 5400 s are 1.50, 18 s are 0.01 and 17 s are 0.00.
/// SAP's `RecordedHours` has two decimals.
public struct Hours: Hashable, Comparable, Sendable, LosslessStringConvertible {
    /// Seconds in a hundredth of an hour.
    public static let secondsPerHundredth = 36

    /// Hundredths of an hour.
    public let hundredths: Int

    /// Creates a number of hundredths of an hour.
    public init(hundredths: Int) { self.hundredths = hundredths }

    /// Rounds seconds to a hundredth of an hour, half up (towards more hours).
    public init(seconds: Int) {
        let rest = seconds % Self.secondsPerHundredth
        let isUpperHalf = (rest < 0 ? rest + Self.secondsPerHundredth : rest) * 2 >= Self.secondsPerHundredth
        hundredths = floorDivide(seconds, by: Self.secondsPerHundredth) + (isUpperHalf ? 1 : 0)
    }

    /// Parses decimal digits with at most two decimals, such as `1.50`, `1.5`, `8` or `-0.25`; returns `nil` for any
    /// other text.
    public init?(_ description: String) {
        let isNegative = description.hasPrefix("-")
        let digits = isNegative ? description.dropFirst() : description[...]
        let parts = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard (1...2).contains(parts.count), let whole = Self.number(parts[0], digitCounts: 1...9) else { return nil }
        var fraction = 0
        if parts.count == 2 {
            guard let decimals = Self.number(parts[1], digitCounts: 1...2) else { return nil }
            fraction = parts[1].utf8.count == 1 ? decimals * 10 : decimals
        }
        hundredths = (isNegative ? -1 : 1) * (whole * 100 + fraction)
    }

    /// The hours in seconds; exact.
    public var seconds: Int { hundredths * Self.secondsPerHundredth }

    /// The hours with two decimals, such as `1.50`.
    public var description: String {
        let size = abs(hundredths)
        return (hundredths < 0 ? "-" : "") + "\(size / 100)." + padded(size % 100, to: 2)
    }

    /// Orders by length.
    public static func < (left: Hours, right: Hours) -> Bool { left.hundredths < right.hundredths }

    private static func number(_ text: Substring, digitCounts: ClosedRange<Int>) -> Int? {
        guard digitCounts.contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            return nil
        }
        return Int(text)
    }
}

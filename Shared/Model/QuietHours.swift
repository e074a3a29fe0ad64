/// A time of the day to the minute, written `07:30`.
package struct MinuteOfDay: Equatable, Sendable {
    /// Minutes since midnight of the local clock, 0 to 1,439.
    package let minutes: Int

    /// Parses exactly `HH:MM`, from `00:00` to `23:59`; returns `nil` for any other text.
    package init?(_ text: some StringProtocol) {
        let bytes = Array(text.utf8)
        guard bytes.count == 5, bytes[2] == UInt8(ascii: ":") else { return nil }
        let digits = [bytes[0], bytes[1], bytes[3], bytes[4]].map { Int($0) - 48 }
        guard digits.allSatisfy((0...9).contains) else { return nil }
        let (hour, minute) = (digits[0] * 10 + digits[1], digits[2] * 10 + digits[3])
        guard hour < 24, minute < 60 else { return nil }
        minutes = hour * 60 + minute
    }
}

/// A daily time without notifications, written `22:00-06:30`: the start is included, the end is not.
package struct QuietHours: Equatable, Sendable {
    /// The first minute, inclusive.
    package let from: MinuteOfDay
    /// The end, exclusive: the minute after the last.
    package let to: MinuteOfDay

    /// Parses two different times; returns `nil` for any other text.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let from = MinuteOfDay(parts[0]), let to = MinuteOfDay(parts[1]), from != to else {
            return nil
        }
        (self.from, self.to) = (from, to)
    }

    /// Whether the minute of the day is in the quiet hours.
    package func contains(_ minutes: Int) -> Bool {
        from.minutes < to.minutes
            ? (from.minutes..<to.minutes).contains(minutes) : minutes >= from.minutes || minutes < to.minutes
    }
}

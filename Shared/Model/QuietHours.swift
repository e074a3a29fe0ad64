/// A time of the day to the minute, written `07:30`.
package struct MinuteOfDay: Equatable, Sendable {
    /// Minutes since the day's beginning as a clock shows them, 0 to 1,439.
    package let minutes: Int

    /// Reads exactly `HH:MM`, from `00:00` to `23:59`; `nil` for anything else.
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

/// When a person is left alone every day, written `22:00-06:30`: from the first time on, and no longer at the second.
package struct QuietHours: Equatable, Sendable {
    /// The first minute.
    package let from: MinuteOfDay
    /// The minute after the last.
    package let to: MinuteOfDay

    /// Reads two different times; `nil` for anything else.
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let from = MinuteOfDay(parts[0]), let to = MinuteOfDay(parts[1]), from != to else {
            return nil
        }
        (self.from, self.to) = (from, to)
    }

    /// Whether a clock shows one of its minutes.
    package func contains(_ minutes: Int) -> Bool {
        from.minutes < to.minutes
            ? (from.minutes..<to.minutes).contains(minutes) : minutes >= from.minutes || minutes < to.minutes
    }
}

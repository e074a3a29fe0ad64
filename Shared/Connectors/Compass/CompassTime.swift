internal import Essentials

/// A time in Compass's format: `2026-10-25 02:30:00`, of the server's clock and in the server's unspecified time zone.
/// When daylight saving time ends, one hour occurs twice, so a later time is not always greater.
///
/// Source: the filter of the sample app's query *Modified Defect*; see also ``CompassAssumptions``.
package struct CompassTime: Sendable, Hashable, Comparable, LosslessStringConvertible {
    /// Seconds since 1970-01-01 00:00:00 of the same clock, without time changes.
    package let clockSeconds: Int

    package init(clockSeconds: Int) { self.clockSeconds = clockSeconds }

    /// Parses `yyyy-MM-dd HH:mm:ss`, ignoring a fraction of the second; `nil` for any other format.
    package init?(_ description: String) {
        // The format is RFC 3339 with a space instead of `T`, and without an offset.
        guard let space = description.firstIndex(of: " "),
            let time = Timestamp(description[..<space] + "T" + description[description.index(after: space)...] + "Z")
        else { return nil }
        clockSeconds = floorDivide(Int(time.millisecondsSinceEpoch), by: 1_000)
    }

    package var description: String {
        let day = Day(daysSinceEpoch: floorDivide(clockSeconds, by: 86_400))
        let second = clockSeconds - day.daysSinceEpoch * 86_400
        let clock = [second / 3_600, second / 60 % 60, second % 60].map { padded($0, to: 2) }
        return "\(day) " + clock.joined(separator: ":")
    }

    /// Returns a later time of the same clock; an earlier one if `seconds` is negative.
    package func adding(seconds: Int) -> CompassTime { CompassTime(clockSeconds: clockSeconds + seconds) }

    package static func < (left: CompassTime, right: CompassTime) -> Bool {
        left.clockSeconds < right.clockSeconds
    }
}

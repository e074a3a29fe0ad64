internal import Essentials

/// A time as Compass writes it: `2026-10-25 02:30:00`, by the server's clock and in the server's zone, without saying
/// which. Where summer time ends one hour comes twice, so later times are not always greater.
///
/// Source: the filter of the sample app's query *Modified Defect*; see also ``CompassAssumptions``.
package struct CompassTime: Sendable, Hashable, Comparable, LosslessStringConvertible {
    /// Seconds since 1970-01-01 00:00:00 of the same clock, as if it were never set.
    package let secondsOfItsClock: Int

    package init(secondsOfItsClock: Int) { self.secondsOfItsClock = secondsOfItsClock }

    /// Reads `yyyy-MM-dd HH:mm:ss`, with a fraction of the second that is cut off; `nil` for anything else.
    package init?(_ description: String) {
        // It is RFC 3339 with a space for the `T`, and without an offset.
        guard let space = description.firstIndex(of: " "),
            let time = Timestamp(description[..<space] + "T" + description[description.index(after: space)...] + "Z")
        else { return nil }
        secondsOfItsClock = floorDivide(Int(time.millisecondsSinceEpoch), by: 1_000)
    }

    package var description: String {
        let day = Day(daysSinceEpoch: floorDivide(secondsOfItsClock, by: 86_400))
        let second = secondsOfItsClock - day.daysSinceEpoch * 86_400
        let clock = [second / 3_600, second / 60 % 60, second % 60].map { padded($0, to: 2) }
        return "\(day) " + clock.joined(separator: ":")
    }

    /// So many seconds later on the same clock; earlier when negative.
    package func adding(seconds: Int) -> CompassTime { CompassTime(secondsOfItsClock: secondsOfItsClock + seconds) }

    package static func < (left: CompassTime, right: CompassTime) -> Bool {
        left.secondsOfItsClock < right.secondsOfItsClock
    }
}

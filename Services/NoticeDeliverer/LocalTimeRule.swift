import Essentials
import Model

/// Times of a person's day, by a zone whose distance from UTC changes: in spring a time may be missing, in autumn one
/// comes twice.
///
/// What is missing comes as much later as is missing (RFC 5545, 3.3.5); what comes twice counts twice.
enum LocalTimeRule {
    /// How far a zone is ahead of UTC at a moment, in seconds.
    typealias Zone = (Timestamp) -> Int

    private static let dayMilliseconds: Int64 = 86_400_000

    /// The minutes of the day that are shown at a moment.
    static func minutes(at time: Timestamp, _ zone: Zone) -> Int {
        let seconds = floorDivide(Int(time.millisecondsSinceEpoch), by: 1_000) + zone(time)
        return floorDivide(seconds, by: 60) - floorDivide(seconds, by: 86_400) * 1_440
    }

    /// The first moment after `time` at which the day's time is shown.
    static func next(_ minute: MinuteOfDay, after time: Timestamp, _ zone: Zone) -> Timestamp {
        let localDay = floorDivide(Int(time.millisecondsSinceEpoch) + zone(time) * 1_000, by: Int(dayMilliseconds))
        let found = (localDay - 1...localDay + 2).flatMap { day in
            moments(Int64(day) * dayMilliseconds + Int64(minute.minutes) * 60_000, zone)
        }
        // Some day among these is after.
        return found.filter { $0 > time }.min() ?? time
    }

    /// The end of the quiet hours that a moment is in; `nil`: it is in none.
    static func quietEnd(_ hours: QuietHours, at time: Timestamp, _ zone: Zone) -> Timestamp? {
        hours.contains(minutes(at: time, zone)) ? next(hours.to, after: time, zone) : nil
    }

    /// When a local time is: once, twice, or as much later as is missing.
    private static func moments(_ local: Int64, _ zone: Zone) -> [Timestamp] {
        let around = [-dayMilliseconds, dayMilliseconds].map {
            zone(Timestamp(millisecondsSinceEpoch: local + $0))
        }
        let candidates = around.map { Timestamp(millisecondsSinceEpoch: local - Int64($0) * 1_000) }
        let shown = zip(candidates, around).filter { zone($0) == $1 }.map(\.0)
        return shown.isEmpty ? Array(candidates.prefix(1)) : shown
    }
}

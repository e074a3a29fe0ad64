import Essentials
import Model

/// Local times of a person, in a zone whose offset from UTC changes: in spring a time may be missing, in autumn one
/// occurs twice.
///
/// A missing time is later by the length of the gap (RFC 5545, 3.3.5). A repeated time occurs twice.
enum LocalTimeRule {
    /// The offset of a zone from UTC at a time, in seconds.
    typealias Zone = (Timestamp) -> Int

    private static let dayMilliseconds: Int64 = 86_400_000

    /// Returns the local minutes of the day at a time.
    static func minutes(at time: Timestamp, _ zone: Zone) -> Int {
        let seconds = floorDivide(Int(time.millisecondsSinceEpoch), by: 1_000) + zone(time)
        return floorDivide(seconds, by: 60) - floorDivide(seconds, by: 86_400) * 1_440
    }

    /// Returns the next time after `time` with this local time of day.
    static func next(_ minute: MinuteOfDay, after time: Timestamp, _ zone: Zone) -> Timestamp {
        let localDay = floorDivide(Int(time.millisecondsSinceEpoch) + zone(time) * 1_000, by: Int(dayMilliseconds))
        let candidates = (localDay - 1...localDay + 2).flatMap { day in
            moments(Int64(day) * dayMilliseconds + Int64(minute.minutes) * 60_000, zone)
        }
        // At least one of these days is later.
        return candidates.filter { $0 > time }.min() ?? time
    }

    /// Returns the end of the quiet hours at a time; `nil` if it is outside of them.
    static func quietEnd(_ hours: QuietHours, at time: Timestamp, _ zone: Zone) -> Timestamp? {
        hours.contains(minutes(at: time, zone)) ? next(hours.to, after: time, zone) : nil
    }

    /// Returns the times with a local time: one, two, or the time after a gap.
    private static func moments(_ local: Int64, _ zone: Zone) -> [Timestamp] {
        let around = [-dayMilliseconds, dayMilliseconds].map {
            zone(Timestamp(millisecondsSinceEpoch: local + $0))
        }
        let candidates = around.map { Timestamp(millisecondsSinceEpoch: local - Int64($0) * 1_000) }
        let shown = zip(candidates, around).filter { zone($0) == $1 }.map(\.0)
        return shown.isEmpty ? Array(candidates.prefix(1)) : shown
    }
}

/// A moment together with the offset of the clock it was read from, written `2015-03-30T08:00:00-04:00` (RFC 3339).
///
/// The offset is kept, because "started at 8" is what the person registered, wherever the entry is read.
public struct ZonedTime: Codable, Hashable, Sendable, LosslessStringConvertible {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    public let millisecondsSinceEpoch: Int64
    /// How far the clock was ahead of UTC, in seconds; a whole number of minutes below 24 hours.
    public let offsetSeconds: Int

    /// The moment as a clock with this offset showed it.
    public init(millisecondsSinceEpoch: Int64, offsetSeconds: Int) {
        self.millisecondsSinceEpoch = millisecondsSinceEpoch
        self.offsetSeconds = offsetSeconds
    }

    /// Reads an RFC 3339 `date-time`, finer fractions than milliseconds cut off; `nil` for anything else.
    public init?(_ description: String) {
        guard let time = RFC3339(description) else { return nil }
        self.init(millisecondsSinceEpoch: time.milliseconds, offsetSeconds: time.offsetSeconds)
    }

    /// The local time with its offset (`Z` for none), and milliseconds only when there are some.
    public var description: String {
        RFC3339(milliseconds: millisecondsSinceEpoch, offsetSeconds: offsetSeconds).text(millisecondsAlways: false)
    }

    /// The day the clock's calendar showed.
    public var day: Day {
        Day(daysSinceEpoch: floorDivide(Int(millisecondsSinceEpoch) + offsetSeconds * 1000, by: 86_400_000))
    }

    /// Whole seconds from this moment to `other`; negative when it is before. Fractions are cut off.
    public func seconds(until other: ZonedTime) -> Int {
        Int((other.millisecondsSinceEpoch - millisecondsSinceEpoch) / 1000)
    }

    /// Reads the time from a JSON string.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let time = ZonedTime(text) else {
            throw decoder.corrupted("'\(text)' is not an RFC 3339 time with offset")
        }
        self = time
    }

    /// Writes the time as a JSON string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

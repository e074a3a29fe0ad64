/// A point in time with the UTC offset of the clock it was read from, written `2015-03-30T08:00:00-04:00` (RFC 3339).
///
/// The offset is stored because "started at 8" is the time that the person registered, wherever the entry is read.
public struct ZonedTime: Codable, Hashable, Sendable, LosslessStringConvertible {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    public let millisecondsSinceEpoch: Int64
    /// The clock's offset from UTC in seconds, positive east of Greenwich; a whole number of minutes below 24 hours.
    public let offsetSeconds: Int

    /// Creates a time with an offset.
    public init(millisecondsSinceEpoch: Int64, offsetSeconds: Int) {
        self.millisecondsSinceEpoch = millisecondsSinceEpoch
        self.offsetSeconds = offsetSeconds
    }

    /// Parses an RFC 3339 `date-time` and truncates fractions finer than milliseconds; returns `nil` for any other
    /// text.
    public init?(_ description: String) {
        guard let time = RFC3339(description) else { return nil }
        self.init(millisecondsSinceEpoch: time.milliseconds, offsetSeconds: time.offsetSeconds)
    }

    /// The local time with its offset (`Z` for zero), with milliseconds only if they are not zero.
    public var description: String {
        RFC3339(milliseconds: millisecondsSinceEpoch, offsetSeconds: offsetSeconds).text(millisecondsAlways: false)
    }

    /// The date in the clock's time zone.
    public var day: Day {
        Day(daysSinceEpoch: floorDivide(Int(millisecondsSinceEpoch) + offsetSeconds * 1000, by: 86_400_000))
    }

    /// Returns the whole seconds from this time to `other`, truncated; negative if `other` is earlier.
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

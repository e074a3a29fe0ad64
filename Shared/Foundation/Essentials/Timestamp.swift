/// A point in time in UTC to the millisecond, written `2015-03-30T12:00:00.000Z` (RFC 3339).
public struct Timestamp: Codable, Hashable, Comparable, Sendable, LosslessStringConvertible {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    public let millisecondsSinceEpoch: Int64

    /// Creates the time `millisecondsSinceEpoch` milliseconds after 1970-01-01T00:00:00Z.
    public init(millisecondsSinceEpoch: Int64) { self.millisecondsSinceEpoch = millisecondsSinceEpoch }

    /// Parses an RFC 3339 `date-time` of any offset and truncates finer fractions; returns `nil` for any other text.
    public init?(_ description: String) {
        guard let time = RFC3339(description) else { return nil }
        millisecondsSinceEpoch = time.milliseconds
    }

    /// The time in UTC, always with three fractional digits: the order of the texts is chronological.
    public var description: String {
        RFC3339(milliseconds: millisecondsSinceEpoch, offsetSeconds: 0).text(millisecondsAlways: true)
    }

    /// Returns the time after a duration, or before a negative one.
    package func adding(_ duration: Duration) -> Timestamp {
        Timestamp(millisecondsSinceEpoch: millisecondsSinceEpoch + duration.milliseconds)
    }

    /// The date in UTC.
    public var day: Day { Day(daysSinceEpoch: floorDivide(Int(millisecondsSinceEpoch), by: 86_400_000)) }

    /// Orders times chronologically.
    public static func < (left: Timestamp, right: Timestamp) -> Bool {
        left.millisecondsSinceEpoch < right.millisecondsSinceEpoch
    }

    /// Reads the time from a JSON string.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard let timestamp = Timestamp(text) else { throw decoder.corrupted("'\(text)' is not an RFC 3339 time") }
        self = timestamp
    }

    /// Writes the time as a JSON string.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

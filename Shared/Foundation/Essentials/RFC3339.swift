/// A `date-time` of RFC 3339 §5.6 as numbers, the common representation of ``Timestamp`` and ``ZonedTime``.
struct RFC3339: Equatable {
    /// Milliseconds since 1970-01-01T00:00:00Z. Finer fractions are truncated.
    var milliseconds: Int64
    /// The local time's offset from UTC, positive east of Greenwich.
    var offsetSeconds: Int

    init(milliseconds: Int64, offsetSeconds: Int) {
        self.milliseconds = milliseconds
        self.offsetSeconds = offsetSeconds
    }

    /// Parses `2015-03-30T08:00:00[.123]Z|±hh:mm`. Leap seconds are rejected: PostgreSQL cannot store them.
    init?(_ text: String) {
        var reader = ASCIIReader(text)
        guard let year = reader.digits(4), reader.skip("-"), let month = reader.digits(2), reader.skip("-"),
            let dayOfMonth = reader.digits(2), let day = Day(year: year, month: month, day: dayOfMonth),
            reader.skip("Tt"), let hour = reader.digits(2), hour < 24, reader.skip(":"),
            let minute = reader.digits(2), minute < 60, reader.skip(":"), let second = reader.digits(2), second < 60,
            let fraction = Self.milliseconds(&reader), let offset = Self.offset(&reader), reader.isAtEnd
        else { return nil }
        let seconds = day.daysSinceEpoch * 86_400 + hour * 3600 + minute * 60 + second - offset
        self.init(milliseconds: Int64(seconds) * 1000 + Int64(fraction), offsetSeconds: offset)
    }

    /// The local time with its offset, or `Z` if the offset is zero.
    func text(millisecondsAlways: Bool) -> String {
        let local = Int(milliseconds) + offsetSeconds * 1000
        let day = Day(daysSinceEpoch: floorDivide(local, by: 86_400_000))
        let ofDay = local - day.daysSinceEpoch * 86_400_000
        let clock = [ofDay / 3_600_000, ofDay / 60_000 % 60, ofDay / 1000 % 60].map { padded($0, to: 2) }
        let fraction = millisecondsAlways || ofDay % 1000 != 0 ? "." + padded(ofDay % 1000, to: 3) : ""
        return day.description + "T" + clock.joined(separator: ":") + fraction + offsetText
    }

    private var offsetText: String {
        guard offsetSeconds != 0 else { return "Z" }
        let minutes = abs(offsetSeconds) / 60
        return (offsetSeconds < 0 ? "-" : "+") + padded(minutes / 60, to: 2) + ":" + padded(minutes % 60, to: 2)
    }

    private static func milliseconds(_ reader: inout ASCIIReader) -> Int? {
        guard reader.skip(".") else { return 0 }
        var value = 0
        var digitCount = 0
        while let digit = reader.digits(1) {
            if digitCount < 3 { value = value * 10 + digit }
            digitCount += 1
        }
        guard (1...9).contains(digitCount) else { return nil }
        for _ in min(digitCount, 3)..<3 { value *= 10 }
        return value
    }

    private static func offset(_ reader: inout ASCIIReader) -> Int? {
        guard let sign = reader.next(of: "Zz+-") else { return nil }
        if sign == UInt8(ascii: "Z") || sign == UInt8(ascii: "z") { return 0 }
        guard let hours = reader.digits(2), hours < 24, reader.skip(":"), let minutes = reader.digits(2), minutes < 60
        else { return nil }
        return (sign == UInt8(ascii: "-") ? -1 : 1) * (hours * 3600 + minutes * 60)
    }
}

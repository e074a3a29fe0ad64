import Essentials
import FoundationEssentials
import Model

/// The texts of one message in one buffer; each `append` returns the range of its text.
struct MessageText {
    private(set) var bytes: [UInt8] = []
    /// The text of the last time, up to its seconds: the objects of a page were changed within few seconds.
    private var second: (sinceEpoch: Int64, text: [UInt8]) = (.min, [])

    mutating func removeAll() { bytes.removeAll(keepingCapacity: true) }

    @discardableResult
    mutating func append(_ text: String) -> Range<Int> {
        let start = bytes.count
        bytes.append(contentsOf: text.utf8)
        return start..<bytes.count
    }

    mutating func append(_ text: [UInt8]) -> Range<Int> {
        let start = bytes.count
        bytes.append(contentsOf: text)
        return start..<bytes.count
    }

    /// In decimal digits; not negative.
    mutating func append(_ number: Int64) -> Range<Int> {
        let start = bytes.count
        var rest = number.magnitude
        repeat {
            bytes.append(48 + UInt8(truncatingIfNeeded: rest % 10))
            rest /= 10
        } while rest > 0
        bytes[start...].reverse()
        return start..<bytes.count
    }

    /// As `UUID.text`: hexadecimal digits in lower case.
    mutating func append(_ id: UUID) -> Range<Int> {
        let start = bytes.count
        id.appendText(to: &bytes)
        return start..<bytes.count
    }

    /// As `Timestamp.description`.
    mutating func append(_ time: Timestamp) -> Range<Int> {
        let (seconds, milliseconds) = time.millisecondsSinceEpoch.quotientAndRemainder(dividingBy: 1_000)
        guard milliseconds >= 0 else { return append(time.description) }
        if second.sinceEpoch != seconds {
            second = (seconds, Array(time.description.utf8.dropLast("000Z".utf8.count)))
        }
        let start = bytes.count
        bytes.append(contentsOf: second.text)
        let fraction = UInt16(truncatingIfNeeded: milliseconds)
        for digit in [fraction / 100, fraction / 10 % 10, fraction % 10] {
            bytes.append(48 + UInt8(truncatingIfNeeded: digit))
        }
        bytes.append(UInt8(ascii: "Z"))
        return start..<bytes.count
    }
}

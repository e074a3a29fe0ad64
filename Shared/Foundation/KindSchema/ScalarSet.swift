/// A set of Unicode scalars. Membership takes a constant time for ASCII, otherwise the logarithm of its ranges.
struct ScalarSet: Equatable, Sendable {
    /// Ranges that neither overlap nor touch, in ascending order.
    let ranges: [ClosedRange<UInt32>]
    /// The members below 64, and those from 64 to 127, as bits.
    private let ascii: (low: UInt64, high: UInt64)

    private static let last: UInt32 = 0x10FFFF

    init(_ ranges: [ClosedRange<UInt32>]) {
        var merged: [ClosedRange<UInt32>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let last = merged.last, range.lowerBound <= last.upperBound + 1 {
                merged[merged.count - 1] = last.lowerBound...max(last.upperBound, range.upperBound)
            } else {
                merged.append(range)
            }
        }
        self.ranges = merged
        var bits: (low: UInt64, high: UInt64) = (0, 0)
        for range in merged where range.lowerBound < 128 {
            for value in range.lowerBound...min(range.upperBound, 127) {
                if value < 64 { bits.low |= 1 << value } else { bits.high |= 1 << (value - 64) }
            }
        }
        ascii = bits
    }

    static func == (left: Self, right: Self) -> Bool { left.ranges == right.ranges }

    static func only(_ scalar: Unicode.Scalar) -> ScalarSet { ScalarSet([scalar.value...scalar.value]) }

    func contains(_ scalar: Unicode.Scalar) -> Bool {
        let value = scalar.value
        if value < 64 { return ascii.low & 1 << value != 0 }
        if value < 128 { return ascii.high & 1 << (value - 64) != 0 }
        var (low, high) = (0, ranges.count)
        while low < high {
            let middle = (low + high) / 2
            if ranges[middle].upperBound < value { low = middle + 1 } else { high = middle }
        }
        return low < ranges.count && ranges[low].contains(value)
    }

    var inverted: ScalarSet {
        var others: [ClosedRange<UInt32>] = []
        var next: UInt32 = 0
        for range in ranges {
            if range.lowerBound > next { others.append(next...(range.lowerBound - 1)) }
            next = range.upperBound + 1
        }
        return ScalarSet(next <= Self.last ? others + [next...Self.last] : others)
    }

    private static let lineEnds = ScalarSet([0x0A...0x0A, 0x0D...0x0D, 0x2028...0x2029])
    static let any = lineEnds.inverted
    static let digits = ScalarSet([0x30...0x39])
    static let word = ScalarSet([0x30...0x39, 0x41...0x5A, 0x5F...0x5F, 0x61...0x7A])
    static let blanks = ScalarSet(
        lineEnds.ranges + [
            0x09...0x09, 0x0B...0x0C, 0x20...0x20, 0xA0...0xA0, 0x1680...0x1680, 0x2000...0x200A, 0x202F...0x202F,
            0x205F...0x205F, 0x3000...0x3000, 0xFEFF...0xFEFF,
        ])
}

import FoundationEssentials

extension Timestamp {
    /// What the wall clock says. For the shell; rules get the time as a value.
    package static func now() -> Timestamp {
        Timestamp(millisecondsSinceEpoch: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)))
    }

    /// Whole seconds since 1970-01-01T00:00:00Z, as tokens count time (RFC 7519, 2).
    package var secondsSinceEpoch: Int64 { Int64(floorDivide(Int(millisecondsSinceEpoch), by: 1000)) }
}

/// The steady clock, for measuring.
package enum SteadyClock {
    private static let start = ContinuousClock.now

    /// Nanoseconds of a clock that only goes forward, since some moment of this process.
    package static func nanoseconds() -> Int64 { (ContinuousClock.now - start).nanoseconds }
}

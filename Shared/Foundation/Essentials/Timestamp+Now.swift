import FoundationEssentials

extension Timestamp {
    /// Reads the wall clock. Only for the outer layers; rules receive the time as a value.
    package static func now() -> Timestamp {
        Timestamp(millisecondsSinceEpoch: Int64((Date().timeIntervalSince1970 * 1000).rounded(.down)))
    }

    /// Whole seconds since 1970-01-01T00:00:00Z, the unit of times in tokens (RFC 7519, 2).
    package var secondsSinceEpoch: Int64 { Int64(floorDivide(Int(millisecondsSinceEpoch), by: 1000)) }
}

/// The monotonic clock, for measurements.
package enum SteadyClock {
    private static let start = ContinuousClock.now

    /// Nanoseconds of a monotonic clock with an arbitrary origin in this process.
    package static func nanoseconds() -> Int64 { (ContinuousClock.now - start).nanoseconds }
}

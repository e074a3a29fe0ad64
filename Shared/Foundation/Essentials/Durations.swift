extension Duration {
    /// Whole milliseconds, rounded down.
    package var milliseconds: Int64 { milliseconds(roundedUp: false) }

    /// Whole milliseconds, rounded up or down.
    package func milliseconds(roundedUp: Bool) -> Int64 {
        let (seconds, attoseconds) = components
        let rest = roundedUp ? 999_999_999_999_999 : Int64(0)
        return seconds.multipliedReportingOverflow(by: 1000).partialValue + (attoseconds + rest) / 1_000_000_000_000_000
    }

    /// Whole nanoseconds, rounded down.
    package var nanoseconds: Int64 {
        components.seconds * 1_000_000_000 + components.attoseconds / 1_000_000_000
    }

    /// Seconds with a fraction.
    package var inSeconds: Double {
        Double(components.seconds) + Double(components.attoseconds) / 1e18
    }
}

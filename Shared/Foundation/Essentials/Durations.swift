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

    /// The two largest units for display, such as `2h 05m`.
    package var shortText: String {
        let milliseconds = self.milliseconds
        let seconds = milliseconds / 1_000
        func twoDigits(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
        return switch seconds {
        case ..<1: "\(max(0, milliseconds))ms"
        case ..<60: "\(seconds)s"
        case ..<3_600: "\(seconds / 60)m \(twoDigits(seconds % 60))s"
        case ..<86_400: "\(seconds / 3_600)h \(twoDigits(seconds / 60 % 60))m"
        default: "\(seconds / 86_400)d \(twoDigits(seconds / 3_600 % 24))h"
        }
    }
}

internal import FoundationEssentials
package import Model

/// The wall clock of the shell; rules get the time as a value.
package enum Clock {
    /// What time it is.
    package static func now() -> Timestamp {
        Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000))
    }
}

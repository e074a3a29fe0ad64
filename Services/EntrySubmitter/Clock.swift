import FoundationEssentials

/// The wall clock of the shell; rules get the time as a value.
enum Clock {
    static func nowMilliseconds() -> Int64 { Int64(Date().timeIntervalSince1970 * 1_000) }
}

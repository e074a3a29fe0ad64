import FoundationEssentials
import Model

/// The wall clock of the shell; rules get the time as a value.
enum Clock {
    static func now() -> Timestamp {
        Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000))
    }
}

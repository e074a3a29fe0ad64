/// Status of a group on a partition, without thresholds: derived from recent commits and the partition's growth.
///
/// Names and order are those of Burrow (github.com/linkedin/Burrow, "Consumer Lag Evaluation Rules").
package enum LagStatus: String, CaseIterable, Comparable, Sendable {
    /// Lag is zero or decreasing.
    case ok = "OK"
    /// Committing, but lag is not decreasing.
    case warn = "WARN"
    /// Has members, no commits.
    case stall = "STALL"
    /// No members.
    case stop = "STOP"
    /// The committed offset moved backwards.
    case rewind = "REWIND"

    /// Severity, from 0 for `ok`.
    package var number: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// Orders by severity.
    package static func < (left: LagStatus, right: LagStatus) -> Bool { left.number < right.number }
}

/// One sign of life of a group on a partition.
package struct CommitSample: Equatable, Sendable {
    /// Committed offset.
    package let offset: Int64
    /// Time of the sample.
    package let milliseconds: Int64
    /// Distance from the end; `nil` if unknown.
    package let lag: Int64?
}

/// How a group fares on a partition, without a threshold: by what it committed lately, and what was written.
///
/// The words and their order are Burrow's (github.com/linkedin/Burrow, "Consumer Lag Evaluation Rules").
package enum LagStatus: String, CaseIterable, Comparable, Sendable {
    /// It keeps up, or catches up.
    case ok = "OK"
    /// It goes on, and is not getting nearer to the end.
    case warn = "WARN"
    /// It is there, and does not go on.
    case stall = "STALL"
    /// It is not there any more.
    case stop = "STOP"
    /// It went back.
    case rewind = "REWIND"

    /// How bad it is, from 0 for `ok`.
    package var number: Int { Self.allCases.firstIndex(of: self) ?? 0 }

    /// Orders them by how bad they are.
    package static func < (left: LagStatus, right: LagStatus) -> Bool { left.number < right.number }
}

/// One sign of life that a group gave of a partition.
package struct CommitSeen: Equatable, Sendable {
    /// What it had committed.
    package let offset: Int64
    /// When.
    package let milliseconds: Int64
    /// How far that was from the end; `nil` when that is not known.
    package let lag: Int64?

    package init(offset: Int64, milliseconds: Int64, lag: Int64?) {
        self.offset = offset
        self.milliseconds = milliseconds
        self.lag = lag
    }
}

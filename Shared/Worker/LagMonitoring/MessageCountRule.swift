/// Numbers of messages between two consecutive samples of a partition, by offsets: what is written less what is
/// consumed is the change of the lag, unless messages expire unread, are lost, or are consumed again. Offsets without a
/// message, as those of transaction markers, count as messages.
enum MessageCountRule {
    /// Offsets of a group's partition.
    struct Sample {
        /// `nil` if the group has no committed offset, or one of content that the broker has lost.
        let committed: Int64?
        let available: Range<Int64>

        /// The offset at which the group resumes.
        fileprivate var start: Int64 { max(committed ?? available.lowerBound, available.lowerBound) }
    }

    /// Number of written messages.
    ///
    /// - Parameters:
    ///   - end: End offset of the previous sample; `nil` before the first one, since earlier messages do not count.
    ///   - next: Available offsets now.
    static func written(from end: Int64?, to next: Range<Int64>) -> Int64 {
        guard let end else { return 0 }
        if next.upperBound >= end { return next.upperBound - end }
        return isRestarted(from: end, to: next) ? next.upperBound : 0
    }

    /// Number of messages that the group has consumed. Messages that it consumes again after a rewind count again.
    ///
    /// - Parameter previous: `nil` before the first sample. A group without a committed offset begins at the first
    ///   available message.
    static func consumed(from previous: Sample?, to next: Sample) -> Int64 {
        // An unchanged offset may belong to content that the broker has lost.
        guard let previous, let committed = next.committed, committed != previous.committed else { return 0 }
        let isRestarted = isRestarted(from: previous.available.upperBound, to: next.available)
        return max(0, committed - (isRestarted ? 0 : previous.start))
    }

    /// Whether offsets began again at 0, as in a topic that was deleted and created. Otherwise an end that moved
    /// backwards lost messages, and nothing was written.
    private static func isRestarted(from end: Int64, to next: Range<Int64>) -> Bool {
        next.upperBound < end && next.lowerBound == 0
    }
}

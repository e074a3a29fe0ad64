import Kafka

/// The commits of a group on a partition, and when the message was written that it has to read next.
struct Course: Sendable {
    private(set) var commits: [CommitSeen] = []
    private(set) var lookCount = 0
    /// How fast it finishes messages.
    private(set) var pace = Pace()
    var nextWritten: (offset: Int64, milliseconds: Int64)?
    /// The same by how the partition grew, as it was known when that message was first waited for: later less is known.
    private(set) var nextGuessed: (offset: Int64, written: PartitionGrowth.Written)?
    private var end: Int64 = 0
    /// When it was looked last.
    private(set) var milliseconds: Int64 = 0

    mutating func guess(_ beginning: Beginning, by growth: PartitionGrowth?) {
        guard nextGuessed == nil, let written = growth?.written(beginning.start) else { return }
        nextGuessed = (beginning.start, written)
    }

    mutating func take(_ beginning: Beginning, hasMembers: Bool, at time: Int64) {
        lookCount = min(lookCount + 1, LagHistory.commitCountMax)
        pace.take(beginning.committed, at: time)
        // Where the end goes back the content was lost, and the same offset is another message.
        let isOther = beginning.end < end
        if isOther || nextWritten?.offset != beginning.start { nextWritten = nil }
        if isOther || nextGuessed?.offset != beginning.start { nextGuessed = nil }
        (end, milliseconds) = (beginning.end, time)
        guard let committed = beginning.committed else {
            // What it had committed was of content that the broker has lost.
            commits = []
            return
        }
        // Members who have nothing to commit commit nothing: that they are there is a sign as good.
        guard hasMembers || commits.last?.offset != committed else { return }
        if commits.count == LagHistory.commitCountMax { commits.removeFirst() }
        commits.append(CommitSeen(offset: committed, milliseconds: time, lag: beginning.end - beginning.start))
    }
}

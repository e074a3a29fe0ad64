import Kafka

/// The commits of a group on a partition, and when the message was written that it has to read next.
struct Course: Sendable {
    private(set) var commits: [CommitSeen] = []
    private(set) var lookCount = 0
    /// How fast it finishes messages.
    private(set) var pace = Pace()
    var nextWritten: (offset: Int64, milliseconds: Int64)?

    mutating func take(_ beginning: Beginning, hasMembers: Bool, at time: Int64) {
        lookCount = min(lookCount + 1, LagHistory.commitCountMax)
        pace.take(beginning.committed, at: time)
        if nextWritten?.offset != beginning.start { nextWritten = nil }
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

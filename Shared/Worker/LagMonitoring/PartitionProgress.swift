import Kafka

/// A group's commits on a partition, and the age of the next message to read.
struct PartitionProgress: Sendable {
    private(set) var commits: [CommitSample] = []
    private(set) var sampleCount = 0
    /// Number of messages between the two latest samples.
    private(set) var writtenCount: Int64 = 0
    private(set) var consumedCount: Int64 = 0
    /// Rate of consumption.
    private(set) var pace = RateAverage()
    var nextWrittenAt: (offset: Int64, milliseconds: Int64)?
    /// The write time of the next message, estimated from the partition's growth when the group first reached that
    /// offset: later estimates are less precise.
    private(set) var nextEstimate: (offset: Int64, written: PartitionGrowth.WriteTime)?
    private var last: Beginning?
    /// Time of the last sample.
    private(set) var milliseconds: Int64 = 0

    mutating func estimate(_ beginning: Beginning, by growth: PartitionGrowth?) {
        guard nextEstimate == nil, let written = growth?.writeTime(beginning.start) else { return }
        nextEstimate = (beginning.start, written)
    }

    mutating func take(_ beginning: Beginning, hasMembers: Bool, at time: Int64) {
        sampleCount = min(sampleCount + 1, LagHistory.commitCountMax)
        let sample = MessageCountRule.Sample(beginning)
        writtenCount = MessageCountRule.written(from: last?.end, to: sample.available)
        consumedCount = MessageCountRule.consumed(from: last.map { MessageCountRule.Sample($0) }, to: sample)
        pace.take(consumedCount, at: time)
        // If the end moved backwards, the content was lost, and the same offset is another message.
        let isReplaced = beginning.end < last?.end ?? 0
        if isReplaced || nextWrittenAt?.offset != beginning.start { nextWrittenAt = nil }
        if isReplaced || nextEstimate?.offset != beginning.start { nextEstimate = nil }
        (last, milliseconds) = (beginning, time)
        guard let committed = beginning.committed else {
            // The previous commits belong to content that the broker has lost.
            commits = []
            return
        }
        // Members without new messages commit nothing: their presence is an equal sign of life.
        guard hasMembers || commits.last?.offset != committed else { return }
        if commits.count == LagHistory.commitCountMax { commits.removeFirst() }
        commits.append(CommitSample(offset: committed, milliseconds: time, lag: beginning.end - beginning.start))
    }
}

extension MessageCountRule.Sample {
    fileprivate init(_ beginning: Beginning) {
        self.init(committed: beginning.committed, available: beginning.first..<beginning.end)
    }
}

/// End offsets of a partition over time.
struct PartitionGrowth: Sendable {
    /// Estimated write time of a message.
    enum WriteTime: Equatable, Sendable {
        case estimated(milliseconds: Int64)
        case before(milliseconds: Int64)
    }

    /// Maximum number of ends. Older ones are thinned out, so that they reach back to the first snapshot: ages of
    /// recent messages are the most precise.
    private static let countMax = 60
    /// Number of recent ends.
    private static let recentMax = 10

    private struct End {
        let offset: Int64
        let first: Int64
        var last: Int64
    }

    private var ends: [End] = []
    /// Ends of the latest snapshots, oldest first.
    private(set) var recentEnds: [Int64] = []
    /// Write rate.
    private(set) var pace = RateAverage()

    /// Time of the last snapshot.
    private(set) var milliseconds: Int64 = 0

    mutating func take(_ available: Range<Int64>, at time: Int64) {
        let offset = available.upperBound
        milliseconds = time
        pace.take(MessageCountRule.written(from: recentEnds.last, to: available), at: time)
        recentEnds.append(offset)
        if recentEnds.count > Self.recentMax { recentEnds.removeFirst() }
        // The partition's content was lost: earlier ends belong to other messages.
        if let last = ends.last, offset < last.offset { ends = [] }
        if let last = ends.last, last.offset == offset {
            ends[ends.count - 1].last = time
            return
        }
        ends.append(End(offset: offset, first: time, last: time))
        if ends.count > Self.countMax { thin(at: time) }
    }

    /// Removes the end whose neighbours are closest to each other in relation to its age.
    private mutating func thin(at time: Int64) {
        var (narrowest, widthMin) = (1, Double.infinity)
        for index in 1..<(ends.count - 1) {
            let width = Double(ends[index + 1].first - ends[index - 1].first) / Double(time - ends[index].first + 1)
            if width < widthMin { (narrowest, widthMin) = (index, width) }
        }
        ends.remove(at: narrowest)
    }

    /// - Returns: `nil` if the message is not written yet.
    func writeTime(_ offset: Int64) -> WriteTime? {
        guard let after = ends.firstIndex(where: { $0.offset > offset }) else { return nil }
        guard after > 0 else { return .before(milliseconds: ends[0].first) }
        let (low, high) = (ends[after - 1], ends[after])
        let share = Double(offset - low.offset + 1) / Double(high.offset - low.offset)
        return .estimated(milliseconds: low.last + Int64(share * Double(high.first - low.last)))
    }
}

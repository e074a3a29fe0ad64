/// Where a partition ended at the times that it was looked at.
struct PartitionGrowth: Sendable {
    /// When a message was written.
    enum Written: Equatable, Sendable {
        case about(milliseconds: Int64)
        case before(milliseconds: Int64)
    }

    /// So many ends are remembered. Of old ones fewer are kept, so that they reach back to the first look: how old a
    /// message is, is known the better the younger it is.
    private static let countMax = 60
    /// The ends of so many looks are recent.
    private static let recentMax = 10

    private struct End {
        let offset: Int64
        let first: Int64
        var last: Int64
    }

    private var ends: [End] = []
    /// Of the last looks, oldest first.
    private(set) var recentEnds: [Int64] = []
    /// How fast messages are written.
    private(set) var pace = Pace()

    /// When it was looked last.
    private(set) var milliseconds: Int64 = 0

    mutating func take(_ offset: Int64, at time: Int64) {
        milliseconds = time
        pace.take(offset, at: time)
        recentEnds.append(offset)
        if recentEnds.count > Self.recentMax { recentEnds.removeFirst() }
        // Its content was lost: what was known is about other messages.
        if let last = ends.last, offset < last.offset { ends = [] }
        if let last = ends.last, last.offset == offset {
            ends[ends.count - 1].last = time
            return
        }
        ends.append(End(offset: offset, first: time, last: time))
        if ends.count > Self.countMax { thin(at: time) }
    }

    /// Forgets the end whose neighbours are nearest to each other for its age.
    private mutating func thin(at time: Int64) {
        var (narrowest, widthMin) = (1, Double.infinity)
        for index in 1..<(ends.count - 1) {
            let width = Double(ends[index + 1].first - ends[index - 1].first) / Double(time - ends[index].first + 1)
            if width < widthMin { (narrowest, widthMin) = (index, width) }
        }
        ends.remove(at: narrowest)
    }

    /// - Returns: `nil` when it is not written yet.
    func written(_ offset: Int64) -> Written? {
        guard let after = ends.firstIndex(where: { $0.offset > offset }) else { return nil }
        guard after > 0 else { return .before(milliseconds: ends[0].first) }
        let (low, high) = (ends[after - 1], ends[after])
        let share = Double(offset - low.offset + 1) / Double(high.offset - low.offset)
        return .about(milliseconds: low.last + Int64(share * Double(high.first - low.last)))
    }
}

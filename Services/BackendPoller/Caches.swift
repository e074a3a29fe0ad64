import Catalogues
import Essentials
import FoundationEssentials
import Model
import Synchronization

/// A cache of people whose data was equal to the stored state: if the same data is read again, and no stored object has
/// changed, it needs no comparison.
///
/// It is kept in memory. After a start, all people are compared once.
struct ComparisonCache {
    /// Maximum number of people; beyond it, the cache is cleared.
    static let countMax = 100_000

    /// A poll, whose id is derived from the person.
    struct Name: Hashable {
        let environment: EnvironmentID
        let poll: UUID
    }

    private var entries: [Name: (hash: Int, position: Int64)] = [:]

    /// Returns the newest position of a person's objects when the same data was read.
    func position(of poll: Name, _ hash: Int) -> Int64? {
        entries[poll].flatMap { $0.hash == hash ? $0.position : nil }
    }

    /// Clears an environment, whose changes were not tracked meanwhile.
    mutating func removeAll(in environment: EnvironmentID) {
        entries = entries.filter { $0.key.environment != environment }
    }

    mutating func insert(_ poll: Name, _ hash: Int, at position: Int64) {
        if entries.count >= Self.countMax { entries = [:] }
        entries[poll] = (hash, position)
    }
}

/// A cache of listed days that were equal to the stored observations: if a day is listed with the same records, and no
/// stored object of its person has changed, it needs no comparison.
///
/// It is kept in memory with one hash per person and day. After a start, all people are compared once.
struct ListingCache {
    /// Maximum number of days of all people, 16 bytes each; beyond it, the cache is cleared.
    static let countMax = 1_000_000

    private struct Slot {
        var hash = 0
        /// The environment's position at the request; −1: never.
        var position: Int64 = -1
    }

    /// Number of cached days per person, used as a ring buffer. Hashes include the day, so they distinguish days with
    /// the same index.
    private let dayCount: Int
    private var slots: [EnvironmentID: [String: [Slot]]] = [:]
    private var count = 0

    init(dayCount: Int) { self.dayCount = max(1, dayCount) }

    /// - Parameter hashes: Hashes of the listed records, one per day from `day` on.
    /// - Returns: A position since which each day was listed with the same hash and equal to the stored state.
    func position(of email: String, _ hashes: [Int], from day: Day, in environment: EnvironmentID) -> Int64? {
        guard let slots = slots[environment]?[email] else { return nil }
        var oldest = Int64.max
        for (offset, hash) in hashes.enumerated() {
            let slot = slots[index(day, offset)]
            guard slot.position >= 0, slot.hash == hash else { return nil }
            oldest = min(oldest, slot.position)
        }
        return oldest
    }

    mutating func insert(
        _ email: String, _ hashes: [Int], from day: Day, at position: Int64, in environment: EnvironmentID
    ) {
        if slots[environment]?[email] == nil {
            count += dayCount
            if count > Self.countMax { (slots, count) = ([:], dayCount) }
            slots[environment, default: [:]][email] = Array(repeating: Slot(), count: dayCount)
        }
        for (offset, hash) in hashes.enumerated() {
            let index = index(day, offset)
            slots[environment]?[email]?[index] = Slot(hash: hash, position: position)
        }
    }

    /// Clears an environment, whose changes were not tracked meanwhile.
    mutating func removeAll(in environment: EnvironmentID) {
        count -= (slots.removeValue(forKey: environment)?.count ?? 0) * dayCount
    }

    private func index(_ day: Day, _ offset: Int) -> Int {
        let remainder = (day.daysSinceEpoch + offset) % dayCount
        return remainder < 0 ? remainder + dayCount : remainder
    }
}

/// A cache of the last tree of nodes: people with the same permissions have the same tree, which is then hashed and
/// sorted only once.
final class LastTreeCache: Sendable {
    private let last = Mutex<(nodes: [Identified<ReportingTreeNode>], tree: NodeTree)?>(nil)

    func tree(of nodes: [Identified<ReportingTreeNode>]) -> NodeTree {
        if let cached = last.withLock({ $0 }), cached.nodes == nodes { return cached.tree }
        let tree = NodeTree(nodes)
        last.withLock { $0 = (nodes, tree) }
        return tree
    }
}

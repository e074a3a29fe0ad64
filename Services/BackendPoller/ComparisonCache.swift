import FoundationEssentials
import Model

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

import Essentials
import Model

/// What was listed of people's days and found to be as it is stored: a day that is listed the same, while nobody has
/// changed what is stored of its person, needs no comparison.
///
/// It is kept in memory by the worker, a hash for each person and day: after a start, everybody is compared once more.
struct ListedDays {
    /// Days of people remembered, 16 bytes each; then all are forgotten.
    static let countMax = 1_000_000

    private struct Slot {
        var hash = 0
        /// Where the environment was when it was asked for; −1: never.
        var position: Int64 = -1
    }

    /// Days of a person that are remembered at a time. A later one takes the place of the one so many days before, and
    /// their hashes tell them apart.
    private let dayCount: Int
    private var known: [EnvironmentID: [String: [Slot]]] = [:]
    private var count = 0

    init(dayCount: Int) { self.dayCount = max(1, dayCount) }

    /// - Parameter hashes: Of what was listed, day by day from `day` on.
    /// - Returns: A position since which each of the days was listed like that and found to be as it is stored.
    func position(of email: String, _ hashes: [Int], from day: Day, in environment: EnvironmentID) -> Int64? {
        guard let slots = known[environment]?[email] else { return nil }
        var oldest = Int64.max
        for (offset, hash) in hashes.enumerated() {
            let slot = slots[index(day, offset)]
            guard slot.position >= 0, slot.hash == hash else { return nil }
            oldest = min(oldest, slot.position)
        }
        return oldest
    }

    mutating func remember(
        _ email: String, _ hashes: [Int], from day: Day, at position: Int64, in environment: EnvironmentID
    ) {
        if known[environment]?[email] == nil {
            count += dayCount
            if count > Self.countMax { (known, count) = ([:], dayCount) }
            known[environment, default: [:]][email] = Array(repeating: Slot(), count: dayCount)
        }
        for (offset, hash) in hashes.enumerated() {
            let index = index(day, offset)
            known[environment]?[email]?[index] = Slot(hash: hash, position: position)
        }
    }

    /// What was changed meanwhile is not known.
    mutating func forget(_ environment: EnvironmentID) {
        count -= (known.removeValue(forKey: environment)?.count ?? 0) * dayCount
    }

    private func index(_ day: Day, _ offset: Int) -> Int {
        let remainder = (day.daysSinceEpoch + offset) % dayCount
        return remainder < 0 ? remainder + dayCount : remainder
    }
}

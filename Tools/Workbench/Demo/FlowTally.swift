import FoundationEssentials
import Model
import Synchronization

/// Counts the progress of all devices.
final class FlowTally: Sendable {
    struct Counts: Equatable, Sendable {
        /// Entries and mistakes that have reached their final state, or cannot reach it.
        var finished = 0
        /// The entries that devices show, by status.
        var statuses: [EntryStatus: Int] = [:]
        /// Mutations that were answered.
        var mutations = 0

        /// The statuses in their order, for a line of progress.
        var line: String {
            EntryStatus.allCases.compactMap { status in
                statuses[status].flatMap { $0 > 0 ? "\(status.rawValue) \($0)" : nil }
            }.joined(separator: ", ")
        }
    }

    private let counts = Mutex(Counts())

    var now: Counts { counts.withLock { $0 } }

    func moved(from old: EntryStatus?, to new: EntryStatus?) {
        guard old != new else { return }
        counts.withLock { counts in
            if let old { counts.statuses[old, default: 0] -= 1 }
            if let new { counts.statuses[new, default: 0] += 1 }
        }
    }

    func finished(_ count: Int) { counts.withLock { $0.finished += count } }

    func answered(_ count: Int) { counts.withLock { $0.mutations += count } }
}

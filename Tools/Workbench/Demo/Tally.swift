import Model
import Synchronization

/// Counts the progress of all devices.
final class Tally<State: CaseIterable & Hashable & RawRepresentable & Sendable>: Sendable
where State.RawValue == String {
    struct Counts: Sendable {
        /// Planned items that have reached their final state, or cannot reach it; in this or an earlier run.
        var finished = 0
        /// Mutations that were answered.
        var mutations = 0
        var states: [State: Int] = [:]

        /// The states in their order, for a line of progress.
        var line: String {
            State.allCases.compactMap { state in
                states[state].flatMap { $0 > 0 ? "\(state.rawValue) \($0)" : nil }
            }.joined(separator: ", ")
        }
    }

    private let counts = Mutex(Counts())

    var now: Counts { counts.withLock { $0 } }

    func moved(from old: State?, to new: State?) {
        guard old != new else { return }
        counts.withLock { counts in
            if let old { counts.states[old, default: 0] -= 1 }
            if let new { counts.states[new, default: 0] += 1 }
        }
    }

    func finish(_ count: Int) { counts.withLock { $0.finished += count } }

    func answered(_ count: Int) { counts.withLock { $0.mutations += count } }
}

/// Counts of the entries that devices show, by status.
typealias EntryTally = Tally<EntryStatus>

/// Counts of this run's actions on tasks, positions and calendars.
typealias FieldworkTally = Tally<FieldworkAction>

enum FieldworkAction: String, CaseIterable, Sendable {
    case made, completed
    /// Edits of calendars that all recipients have received.
    case edits = "edits seen"
    case positions
}

import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model

/// What a run polls.
enum ScheduleRule {
    /// What is known of a poll.
    typealias Known = KnownRun

    /// How an environment is polled.
    struct Beat: Equatable {
        /// Whether its back end tells what has changed, or lists everybody's records together.
        var tellsChanges: Bool
        /// Whether the interval between full comparisons is over.
        var isFullDue: Bool

        /// Whether a run compares all that everybody has: where changes are not told, each one does.
        var isFull: Bool { isFullDue || !tellsChanges }

        init(tellsChanges: Bool, isFullDue: Bool) { (self.tellsChanges, self.isFullDue) = (tellsChanges, isFullDue) }

        /// - Parameters:
        ///   - capabilities: The back end's; `nil` while it cannot be called.
        ///   - fullAge: Since when the last full comparison was begun; `nil`: one is asked for.
        init(_ capabilities: BackendCapabilities?, peopleCount: Int, isFullDue: Bool, fullAge: Duration?) {
            let tellsChanges = capabilities.map { ScheduleRule.tellsChanges($0, peopleCount: peopleCount) } ?? false
            let isTooEarly = capabilities.map { capabilities in
                fullAge.map { $0 < ScheduleRule.fullMin(capabilities, peopleCount: peopleCount) } ?? false
            }
            self.init(tellsChanges: tellsChanges, isFullDue: isFullDue && !(isTooEarly ?? false))
        }
    }

    /// The least time between full comparisons, whatever interval is set: one that asks for each person by themselves,
    /// six times, and finds everybody's records together in between, is not to ask more than 0.75 times a second.
    static func fullMin(_ capabilities: BackendCapabilities, peopleCount: Int) -> Duration {
        capabilities.tellsChanges || !capabilities.listsEverybody ? .zero : .seconds(8) * peopleCount
    }

    /// Fewer people are compared in full by each run, though their back end lists everybody's records: that is a
    /// hundred requests or so, whatever the size of their company, and tells new choices at once.
    static let listedPeopleMin = 20

    /// Whether a run between full comparisons finds changes.
    static func tellsChanges(_ capabilities: BackendCapabilities, peopleCount: Int) -> Bool {
        capabilities.tellsChanges || capabilities.listsEverybody && peopleCount >= listedPeopleMin
    }

    /// Whose polls belong to a run: the one of changes, where they are told or found in a listing of everybody's
    /// records, and those of the people who are to be compared. A person who was never compared, or whose poll requests
    /// another one, does not wait for the next full comparison.
    static func polls(of people: [String], known: [String: Known], beat: Beat) -> [String] {
        (beat.tellsChanges ? [Poll.ofChanges] : [])
            + people.filter { person in
                beat.isFull || known[person].map { $0.run == Poll.runOfAnother } ?? true
            }
    }

    /// Those of `polls` that are written for `run`: those that are not there yet, and those that are due.
    static func due(
        _ polls: [String], known: [String: Known], run: Int64, now: Timestamp, staleMax: Duration
    ) -> [String] {
        polls.filter { known[$0]?.isDue(for: run, now: now, staleMax: staleMax) ?? true }
    }
}

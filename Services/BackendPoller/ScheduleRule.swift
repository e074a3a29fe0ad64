import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model

/// Determines the polls of a run.
enum ScheduleRule {
    /// The polling mode of an environment.
    struct PollMode: Equatable {
        /// Whether runs between full comparisons detect changes, by a change feed or a bulk listing.
        var isIncremental: Bool
        /// Whether the interval between full comparisons has passed.
        var isFullDue: Bool

        /// Whether a run compares all objects of all people: each run does, unless it is incremental.
        var isFull: Bool { isFullDue || !isIncremental }

        init(isIncremental: Bool, isFullDue: Bool) {
            (self.isIncremental, self.isFullDue) = (isIncremental, isFullDue)
        }

        /// - Parameters:
        ///   - capabilities: The back end's capabilities; `nil` while it cannot be called.
        ///   - fullAge: Time since the start of the last full comparison; `nil` if one was requested.
        init(_ capabilities: BackendCapabilities?, peopleCount: Int, isFullDue: Bool, fullAge: Duration?) {
            let isIncremental =
                capabilities.map { ScheduleRule.isIncremental($0, peopleCount: peopleCount) } ?? false
            let isTooEarly = capabilities.map { capabilities in
                fullAge.map { $0 < ScheduleRule.fullMin(capabilities, peopleCount: peopleCount) } ?? false
            }
            self.init(isIncremental: isIncremental, isFullDue: isFullDue && !(isTooEarly ?? false))
        }
    }

    /// Returns the minimum time between full comparisons, regardless of the configured interval. With a bulk listing, a
    /// full comparison needs about six requests per person; the limit corresponds to 0.75 requests per second.
    static func fullMin(_ capabilities: BackendCapabilities, peopleCount: Int) -> Duration {
        capabilities.supportsChangeFeed || !capabilities.supportsBulkListing ? .zero : .seconds(8) * peopleCount
    }

    /// Minimum number of people for bulk listings. Fewer people are compared in full by each run: that takes about a
    /// hundred requests, independently of their company's size, and detects new choices immediately.
    static let listedPeopleMin = 20

    /// Returns whether runs between full comparisons detect changes.
    static func isIncremental(_ capabilities: BackendCapabilities, peopleCount: Int) -> Bool {
        capabilities.supportsChangeFeed || capabilities.supportsBulkListing && peopleCount >= listedPeopleMin
    }

    /// Returns the people whose polls belong to a run, including `Poll.changesPerson` for an incremental run. A person
    /// who was never compared, or whose poll requests another comparison, does not wait for the next full one.
    static func polls(of people: [String], known: [String: PollRunState], mode: PollMode) -> [String] {
        (mode.isIncremental ? [Poll.changesPerson] : [])
            + people.filter { person in
                mode.isFull || known[person].map { $0.run == Poll.repeatRequestedRun } ?? true
            }
    }

    /// Returns the polls that are written for `run`: new and due ones.
    static func due(
        _ polls: [String], known: [String: PollRunState], run: Int64, now: Timestamp, staleMax: Duration
    ) -> [String] {
        polls.filter { known[$0]?.isDue(for: run, now: now, staleMax: staleMax) ?? true }
    }
}

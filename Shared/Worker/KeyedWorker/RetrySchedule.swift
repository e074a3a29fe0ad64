import Model

/// When calls that found no room are tried again: those of one person one after the other, as fast as the person's part
/// of the calls, so that they do not all come back at once and find no room again. A value without a clock.
struct RetrySchedule: Sendable {
    /// No wait is longer: things may go faster meanwhile.
    var waitMax = Duration.seconds(60)
    /// People of an environment that are remembered; beyond it all of them begin anew.
    static let peopleMax = 10_000

    private var planned: [EnvironmentID: [String: ContinuousClock.Instant]] = [:]

    /// Environments with calls that are to come back.
    var environments: [EnvironmentID] { Array(planned.keys) }

    /// Forgets those whose time has come.
    mutating func prune(now: ContinuousClock.Instant) {
        planned = planned.compactMapValues { people in
            let people = people.filter { $0.value > now }
            return people.isEmpty ? nil : people
        }
    }

    /// No calls of the environment are left that are to come back.
    mutating func forget(_ environment: EnvironmentID) { planned[environment] = nil }

    /// - Parameter interval: The time between two calls of the environment.
    mutating func wait(for turn: FlowKey, every interval: Duration, now: ContinuousClock.Instant) -> Duration {
        let (environment, person) = (turn.environment, turn.person)
        let before = planned[environment]?[person]
        let count = planned[environment]?.count ?? 0
        if before == nil, count >= Self.peopleMax { planned[environment] = nil }
        // The person and the others.
        let people = before == nil ? min(count, Self.peopleMax - 1) + 1 : count
        let at = max(before ?? now, now) + interval * people
        planned[environment, default: [:]][person] = min(at, now + waitMax)
        return min(at - now, waitMax)
    }
}

import Model

/// Retry times of calls that found no free slot. The calls of one person are spaced by the person's share of the
/// environment's calls, so that they do not all retry at once. A value without a clock.
struct SlotSchedule: Sendable {
    /// Maximum wait: calls may become faster meanwhile.
    var waitMax = Duration.seconds(60)
    /// Maximum number of people per environment; beyond it the environment's schedule is cleared.
    static let peopleMax = 10_000

    private var planned: [EnvironmentID: [String: ContinuousClock.Instant]] = [:]

    /// Environments with planned retries.
    var environments: [EnvironmentID] { Array(planned.keys) }

    /// Removes retries that are due.
    mutating func prune(now: ContinuousClock.Instant) {
        planned = planned.compactMapValues { people in
            let people = people.filter { $0.value > now }
            return people.isEmpty ? nil : people
        }
    }

    /// Removes an environment without deferred calls.
    mutating func remove(_ environment: EnvironmentID) { planned[environment] = nil }

    /// - Parameter interval: Interval between two calls of the environment.
    mutating func wait(for flow: FlowKey, every interval: Duration, now: ContinuousClock.Instant) -> Duration {
        let (environment, person) = (flow.environment, flow.person)
        let before = planned[environment]?[person]
        let count = planned[environment]?.count ?? 0
        if before == nil, count >= Self.peopleMax { planned[environment] = nil }
        // Including the person.
        let people = before == nil ? min(count, Self.peopleMax - 1) + 1 : count
        let at = max(before ?? now, now) + interval * people
        planned[environment, default: [:]][person] = min(at, now + waitMax)
        return min(at - now, waitMax)
    }
}

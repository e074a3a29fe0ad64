import Model

/// When calls that found no room are tried again: those of one person one after the other, as fast as the person's part
/// of the calls, so that they do not all come back at once and find no room again. A value without a clock.
struct ReturnPlan: Sendable {
    /// No wait is longer: things may go faster meanwhile.
    static let waitMax = Duration.seconds(60)
    /// People that are remembered; beyond it all begin anew.
    static let peopleMax = 10_000

    private var planned: [CallTurn: ContinuousClock.Instant] = [:]

    /// Environments with calls that are to come back.
    func environments(now: ContinuousClock.Instant) -> Set<EnvironmentID> {
        Set(planned.filter { $0.value > now }.map(\.key.environment))
    }

    /// - Parameter interval: The time between two calls of the environment.
    mutating func wait(for turn: CallTurn, every interval: Duration, now: ContinuousClock.Instant) -> Duration {
        if planned.count >= Self.peopleMax { planned = [:] }
        planned = planned.filter { $0.value > now }
        let others = planned.keys.count { $0.environment == turn.environment && $0 != turn }
        let at = max(planned[turn] ?? now, now) + interval * (others + 1)
        planned[turn] = min(at, now + Self.waitMax)
        return min(at - now, Self.waitMax)
    }
}

import HTTPTypes
import Runtime
import Synchronization

/// Bounds on sign-ins, whose strangers have no session: requests of one network in a minute, and how many are under way
/// at a time, of one network and of all. What one network uses up is its own.
final class SignInBudget: Sendable {
    /// Requests of one network in a minute; a sign-in takes two.
    static let requestCountMax = 60
    /// Requests of one network under way at a time.
    static let openCountMax = 8
    /// Requests of all networks under way at a time.
    static let totalOpenCountMax = 200
    /// Networks that are told apart within a minute; further ones share one budget.
    static let networkCountMax = 10_000

    private struct Use {
        var minute: ContinuousClock.Instant
        var count = 0
        var openCount = 0
    }

    private struct State {
        var uses: [String: Use] = [:]
        var openCount = 0
    }

    private let now: @Sendable () -> ContinuousClock.Instant
    private let state = Mutex(State())

    init(now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }) { self.now = now }

    /// Networks that are remembered.
    var networkCount: Int { state.withLock { $0.uses.count } }

    /// Runs `body`, which answers a request of a stranger, when there is room for it.
    ///
    /// - Parameter client: The address that it comes from.
    /// - Throws: `Problem` 429 when there is none; what `body` throws.
    func during<Answer>(_ client: String, _ body: () async throws -> Answer) async throws -> Answer {
        guard let network = take(ClientAddress.network(of: client)) else { throw Self.tooMany }
        defer { end(network) }
        return try await body()
    }

    /// - Returns: Whose budget it is; `nil` when it is used up.
    func take(_ network: String) -> String? {
        let now = now()
        return state.withLock { state in
            var name = network
            if state.uses[name] == nil, state.uses.count >= Self.networkCountMax {
                state.uses = state.uses.filter { $0.value.openCount > 0 || now - $0.value.minute < .seconds(60) }
                if state.uses.count >= Self.networkCountMax { name = "others" }
            }
            var use = state.uses[name] ?? Use(minute: now)
            if now - use.minute >= .seconds(60) { (use.minute, use.count) = (now, 0) }
            guard use.count < Self.requestCountMax, use.openCount < Self.openCountMax,
                state.openCount < Self.totalOpenCountMax
            else { return nil }
            use.count += 1
            use.openCount += 1
            state.openCount += 1
            state.uses[name] = use
            return name
        }
    }

    func end(_ network: String) {
        state.withLock { state in
            state.uses[network]?.openCount -= 1
            state.openCount -= 1
        }
    }

    private static let tooMany = Problem(
        .tooManyRequests, detail: "Too many sign-ins; try again in a minute.", headers: [.retryAfter: "60"])
}

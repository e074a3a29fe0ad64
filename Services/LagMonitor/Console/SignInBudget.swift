import HTTPServer
import HTTPTypes
import Synchronization

/// Limits of requests without a session: how many of one network come to nothing (a token bucket), and how many are in
/// progress at a time, of one network and of all. What one network uses up is its own; what succeeds uses up nothing.
final class SignInBudget: Sendable {
    /// Requests of one network at once; a sign-in takes two.
    static let requestCountMax = 60
    /// Time until a network may send one more request. Slow guesses above this rate are refused in the end, too.
    static let refillInterval = Duration.seconds(5)
    /// Requests of one network under way at a time.
    static let openCountMax = 8
    /// Requests of all networks under way at a time.
    static let totalOpenCountMax = 200
    /// Maximum number of networks with a budget of their own; further ones share one.
    static let networkCountMax = 10_000

    private struct Use {
        /// Requests that are not refilled yet, as of a time.
        var count = 0
        var since: ContinuousClock.Instant
        var openCount = 0

        mutating func refill(_ now: ContinuousClock.Instant) {
            let refilled = Int((now - since) / refillInterval)
            (count, since) = refilled < count ? (count - refilled, since + refillInterval * refilled) : (0, now)
        }
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

    /// Counts a request that came to nothing.
    ///
    /// - Throws: `Problem` 429 when there were too many.
    func count(_ client: String) throws {
        guard let network = take(ClientAddress.network(of: client)) else { throw Self.tooMany }
        end(network)
    }

    /// Gives back what a sign-in that succeeded has used.
    func giveBack(_ client: String) {
        state.withLock { state in
            let network = ClientAddress.network(of: client)
            guard let count = state.uses[network]?.count else { return }
            state.uses[network]?.count = max(0, count - 2)
        }
    }

    /// - Returns: Whose budget it is; `nil` when it is used up.
    func take(_ network: String) -> String? {
        let now = now()
        return state.withLock { state in
            var name = network
            if state.uses[name] == nil, state.uses.count >= Self.networkCountMax {
                for key in state.uses.keys { state.uses[key]?.refill(now) }
                state.uses = state.uses.filter { $0.value.openCount > 0 || $0.value.count > 0 }
                if state.uses.count >= Self.networkCountMax { name = "others" }
            }
            var use = state.uses[name] ?? Use(since: now)
            use.refill(now)
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
        .tooManyRequests, detail: "Too many attempts; try again in a minute.", headers: [.retryAfter: "60"])
}

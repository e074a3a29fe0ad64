import HTTPServer
import HTTPTypes
import Synchronization

/// Rate limits of requests without a session: a token bucket of failed requests per network, and concurrency limits per
/// network and in total. Networks do not affect each other; successful sign-ins are not counted.
final class SignInBudget: Sendable {
    /// The burst of requests per network; a sign-in needs two.
    static let requestCountMax = 60
    /// The interval at which one token is refilled. Slow guesses above this rate are eventually rejected.
    static let refillInterval = Duration.seconds(5)
    /// The limit of concurrent requests per network.
    static let openCountMax = 8
    /// The limit of concurrent requests of all networks.
    static let totalOpenCountMax = 200
    /// The limit of networks with a separate budget; further ones share one.
    static let networkCountMax = 10_000

    private struct Use {
        /// The number of used tokens at `since`.
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

    /// The number of networks with a budget in use.
    var networkCount: Int { state.withLock { $0.uses.count } }

    /// Runs `body`, which handles an unauthenticated request, within the limits.
    ///
    /// - Parameter client: The client's network address.
    /// - Throws: `Problem` 429 if a limit is exceeded; the errors of `body`.
    func run<Success>(_ client: String, _ body: () async throws -> Success) async throws -> Success {
        guard let network = acquire(ClientAddress.network(of: client)) else { throw Self.tooMany }
        defer { release(network) }
        return try await body()
    }

    /// Counts a failed request.
    ///
    /// - Throws: `Problem` 429 if the limit is exceeded.
    func count(_ client: String) throws {
        guard let network = acquire(ClientAddress.network(of: client)) else { throw Self.tooMany }
        release(network)
    }

    /// Refunds the tokens of a successful sign-in.
    func refund(_ client: String) {
        state.withLock { state in
            let network = ClientAddress.network(of: client)
            guard let count = state.uses[network]?.count else { return }
            state.uses[network]?.count = max(0, count - 2)
        }
    }

    /// Takes a token.
    ///
    /// - Returns: The name of the budget; `nil` if it is exhausted.
    func acquire(_ network: String) -> String? {
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

    func release(_ network: String) {
        state.withLock { state in
            state.uses[network]?.openCount -= 1
            state.openCount -= 1
        }
    }

    private static let tooMany = Problem(
        .tooManyRequests, detail: "Too many attempts; retry in one minute.", headers: [.retryAfter: "60"])
}

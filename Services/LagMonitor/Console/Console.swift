import Essentials
import HTTP
import Hummingbird
import Identity
import Logging
import Model
import NIOCore
import Postgres
import Realms
import Runtime

/// The operators' page, put together: a component of the monitor that runs only where it is configured.
struct Console: Sendable {
    private let settings: ConsoleSettings
    private let login: ConsoleLogin
    private let api: ConsoleAPI
    private let watch: ServiceWatch
    private let budget: RequestBudget
    private let pool: Pool
    private let logger: Logger

    /// Beginnings and ends of logins in a minute, of all browsers together.
    private static let loginCountMax = 300
    private static let poolSize = 2
    private static let jobCountMax = 200
    private static let connectionCountMax = 500

    /// One statement of a page ends before a person gives up; a long one does not hold up the counters.
    private static var limits: Limits {
        var limits = Limits(lockMax: .seconds(2))
        (limits.statementMax, limits.tcpUserMax) = (.seconds(10), .seconds(5))
        return limits
    }

    /// Opens the database's connections and checks its schema.
    ///
    /// - Parameter now: By which sessions age.
    init(
        _ settings: ConsoleSettings, database: String, board: LookBoard, logger: Logger, client: Client = Client(),
        now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) async throws {
        let pool = try Pool(
            database, size: Self.poolSize, jobCountMax: Self.jobCountMax, limits: Self.limits, check: Lineage.check)
        try await pool.run { try Schema.check(on: &$0) }
        let cookies = ConsoleCookies(isSecure: settings.isSecure)
        let sessions = ConsoleSessions(ageMax: settings.sessionMax, idleMax: settings.idleMax, now: now)
        let provider = OpenIDProvider(client: client)
        let keys = JWKS(client: client)
        var limits = TokenVerifier.Limits()
        limits.refetchMin = .seconds(1)
        limits.cachedCountMax = 100
        login = ConsoleLogin(
            settings: settings, cookies: cookies, sessions: sessions, provider: provider,
            providers: ProviderDirectory(provider),
            verifier: TokenVerifier(limits: limits, fetch: { try await keys.fetch($0) }), pool: pool, logger: logger)
        watch = ServiceWatch(settings.services, client: client)
        let gate = ConsoleGate(settings: settings, cookies: cookies, sessions: sessions)
        api = ConsoleAPI(gate: gate, board: board, watch: watch, pool: pool)
        budget = RequestBudget(countMax: Self.loginCountMax)
        (self.settings, self.pool, self.logger) = (settings, pool, logger)
    }

    /// The parts to run.
    func components(
        host: String, port: Int, tls: HTTPEdge.TLSFiles? = nil,
        started: @escaping @Sendable (Int) -> Void = { _ in }
    ) -> [Component] {
        let limits = HTTPLimits(
            bodyBytesMax: ConsoleAPI.bodyBytesMax, headerBytesMax: 16_384,
            connectionCountMax: Self.connectionCountMax, bodyMax: .seconds(15))
        let http = Component.http(
            "console", host: host, port: port, limits: limits, edge: HTTPEdge(tls: tls), context: EdgeContext.self,
            started: started
        ) { addRoutes(to: $0) }
        return (watch.isConfigured ? [watch.component(logger)] : []) + [http]
    }

    /// Ends the database's connections once their work is done.
    func close() { pool.stop() }

    private func addRoutes(to router: Router<EdgeContext>) {
        for file in ConsolePage.files {
            router.get(file.path) { request, _ in ConsolePage.response(file, to: request) }
        }
        router.get("/sign-in") { _, _ in
            guard budget.take() else { throw Self.tooMany }
            return await login.begin()
        }
        router.get("/callback") { request, context in
            guard budget.take() else { throw Self.tooMany }
            return try await ConsoleAnswer.answering {
                try await login.finish(request, from: settings.clients.text(request, context))
            }
        }
        api.addRoutes(to: router)
    }

    private static let tooMany = Problem(
        .tooManyRequests, detail: "Too many sign-ins; try again in a minute.", headers: [.retryAfter: "60"])
}

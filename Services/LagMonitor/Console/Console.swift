import Essentials
import HTTPClient
import HTTPServer
import Hummingbird
import Identity
import Logging
import Model
import NIOCore
import ServiceRuntime

/// The operators' web console: a component of the monitor that runs only if configured.
struct Console: Sendable {
    private let settings: ConsoleSettings
    private let login: ConsoleLogin
    private let api: ConsoleAPI
    private let watch: ServiceWatch
    private let budget: SignInBudget
    private let database: ConsoleDatabase
    private let logger: Logger

    private static let connectionCountMax = 500

    /// - Parameter now: The clock of sessions and budgets.
    init(
        _ settings: ConsoleSettings, database: String, brokers: ConsoleBrokers, board: SnapshotBoard, logger: Logger,
        client: Client = Client(), now: @escaping @Sendable () -> ContinuousClock.Instant = { .now }
    ) {
        let database = ConsoleDatabase(database)
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
            verifier: TokenVerifier(limits: limits, fetch: { try await keys.fetch($0) }), database: database,
            logger: logger)
        watch = ServiceWatch(settings.services, client: client)
        let gate = ConsoleGate(
            settings: settings, cookies: cookies, sessions: sessions, guesses: SignInBudget(now: now))
        api = ConsoleAPI(gate: gate, board: board, watch: watch, database: database, brokers: brokers)
        budget = SignInBudget(now: now)
        (self.settings, self.database, self.logger) = (settings, database, logger)
    }

    /// Returns the components to run.
    func components(
        host: String, port: Int, tls: HTTPEdge.TLSFiles? = nil, started: @escaping @Sendable (Int) -> Void = { _ in }
    ) -> [Component] {
        let limits = HTTPLimits(
            bodyBytesMax: ConsoleAPI.bodyBytesMax, headerBytesMax: 16_384, connectionCountMax: Self.connectionCountMax,
            networkConnectionCountMax: settings.clients.proxyCount > 0 ? 0 : Self.connectionCountMax / 2,
            bodyMax: .seconds(15))
        let http = Component.http(
            "console", host: host, port: port, limits: limits, edge: HTTPEdge(tls: tls), started: started
        ) { addRoutes(to: $0) }
        return (watch.isConfigured ? [watch.component(logger)] : []) + [database.component, http]
    }

    var isDatabaseOpen: Bool { database.isOpen }

    /// Closes the database pools after their work in progress.
    func close() { database.close() }

    private func addRoutes(to router: Router<EdgeContext>) {
        for file in ConsolePage.files {
            router.get(file.path) { request, _ in ConsolePage.response(file, to: request) }
        }
        router.get("/sign-in") { request, context in
            try await budget.run(settings.clients.text(request, context)) { await login.begin() }
        }
        router.get("/callback") { request, context in
            let client = settings.clients.text(request, context)
            let response = try await budget.run(client) { try await login.finish(request, from: client) }
            if response.status == .seeOther { budget.refund(client) }
            return response
        }
        api.addRoutes(to: router)
    }
}

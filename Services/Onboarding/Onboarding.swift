import Essentials
import HTTPClient
import HTTPServer
import Hummingbird
import Identity
import Logging
import NIOCore
import ObjectStore
import Postgres
import Secrets
import ServiceRuntime
import ServiceSettings

/// The onboarding service: its routes, session sockets and background tasks.
struct Onboarding: Sendable {
    let hub: SessionHub
    private let register: RegisterRoute
    private let login: LoginFlow
    private let token: TokenRoute
    private let logout: LogoutRoute
    private let socket: SessionSocket
    private let limits: OnboardingLimits
    private let clients: ClientAddress
    private let page: DevicePage?
    private let app: AppFolder?
    private let services: [Repeating]
    private let pools: [Pool]
    private let logger: Logger

    private static let watchInterval = Duration.milliseconds(50)
    /// The interval without waiting sessions. After it, sessions of other instances are found.
    private static let idleInterval = Duration.seconds(1)
    /// The number of polls in the connection's thread. Afterwards `Repeating` resets its backoff.
    private static let idlePollCountMax = 600
    private static let cleanupInterval = Duration.seconds(5)
    /// The number of sessions deleted per transaction.
    private static let cleanupCountMax = 1_000

    /// Opens the database pools and checks the schema.
    ///
    /// - Parameters:
    ///   - url: The public base URL of this service.
    ///   - gateway: The device API's base URL without a trailing slash; `nil` disables the device page.
    ///   - app: The field app's files; `nil` disables the app.
    ///   - now: Seconds since 1970, for token validation.
    init(
        database: String, url: String, secrets: SecretBox, limits: OnboardingLimits,
        clients: ClientAddress = ClientAddress(), gateway: String? = nil, app: AppFolder? = nil,
        health: Health? = nil, logger: Logger, client: Client = Client(),
        now: @escaping @Sendable () -> Int64 = TokenCheck.now
    ) async throws {
        guard secrets.canSeal else { throw ConfigurationError("\(Setting.secretKeys.variable) is not set") }
        let base = url.hasSuffix("/") ? String(url.dropLast()) : url
        guard OpenIDProvider.isUsable(base) else {
            throw ConfigurationError("\(Settings.url.variable) must be an https URL, or an http URL of localhost")
        }
        let pool = try Pool(database, size: limits.poolSize, check: Lineage.check)
        let position = try await pool.run { connection in
            try Schema.check(on: &connection)
            return try EventStore.position(on: &connection)
        }
        // Separate pools, so that event delivery does not wait for requests.
        let own = try (0..<3).map { _ in try Pool(database, size: 1, check: Lineage.check) }
        let store = SessionStore(secrets: secrets, limits: limits)
        let events = EventStore(secrets: secrets)
        let provider = OpenIDProvider(client: client)
        let providers = ProviderDirectory(provider)
        let redirect = base + "/auth_callback"
        hub = try SessionHub(
            after: position, pool: own[0], events: events, limits: limits, health: health, logger: logger)
        let changes = try SessionChanges()
        services = Self.services(RealmWatch(events: events, logger: logger), changes, pool, own, health, logger)
        register = RegisterRoute(
            store: store, pool: pool, limits: limits, providers: providers, redirect: redirect, clients: clients,
            changes: changes)
        let check = TokenCheck(keys: JWKS(client: client), refetchMin: limits.refetchMin, now: now) {
            environment, names in
            do {
                try await pool.run { try SessionStore.store(claims: names, in: environment, on: &$0) }
            } catch {
                // Only an aid for configuring the environment: must not fail the login.
                logger.info("storing claim names failed", metadata: ["error": "\(error)"])
            }
        }
        login = LoginFlow(
            store: store, pool: pool, limits: limits, redirect: redirect, provider: provider, providers: providers,
            check: check, changes: changes, logger: logger)
        let devices = DeviceStore(secrets: secrets, leaseMax: limits.leaseMax)
        token = TokenRoute(
            devices: devices, pool: pool, limits: limits, provider: provider, providers: providers, check: check,
            clients: clients, logger: logger)
        logout = LogoutRoute(
            devices: devices, pool: pool, limits: limits, provider: provider, providers: providers, clients: clients,
            logger: logger)
        socket = SessionSocket(pool: pool, events: events, hub: hub, limits: limits, clients: clients, logger: logger)
        page = gateway.map { DevicePage(gateway: $0, client: client) }
        pools = [pool] + own
        self.app = app
        self.limits = limits
        self.clients = clients
        self.logger = logger
    }

    private static func services(
        _ watch: RealmWatch, _ changes: SessionChanges, _ pool: Pool, _ own: [Pool], _ health: Health?,
        _ logger: Logger
    ) -> [Repeating] {
        [
            Repeating("realm-registration", every: watchInterval, health: health, logger: logger) {
                let wakeup = changes.toRegister
                try await own[1].run(interruptedBy: wakeup) { connection in
                    for _ in 0..<idlePollCountMax {
                        guard try watch.register(on: &connection) == 0 else { return }
                        health?.ready(true, source: "realm-registration")
                        if wakeup.wait(atMost: idleInterval) { return }
                    }
                }
            },
            Repeating("realm-notifications", every: watchInterval, health: health, logger: logger) {
                let wakeup = changes.toNotify
                let rest = try await own[2].run(interruptedBy: wakeup) { connection -> Duration in
                    for _ in 0..<idlePollCountMax {
                        let start = ContinuousClock.now
                        // Many waiting sessions use at most a fifth of the connection's time.
                        if try watch.notify(on: &connection) { return (.now - start) * 4 }
                        health?.ready(true, source: "realm-notifications")
                        if wakeup.wait(atMost: idleInterval) { break }
                    }
                    return .zero
                }
                try? await Task.sleep(for: rest)
            },
            Repeating("session-cleanup", every: cleanupInterval, health: health, logger: logger) {
                while try await pool.run({ try SessionStore.deleteExpired(countMax: cleanupCountMax, on: &$0) }) {}
            },
        ]
    }

    /// Returns the components to run: sockets close before the server waits for its connections.
    func components(
        host: String, port: Int, connectionCountMax: Int = 20_000, networkConnectionCountMax: Int = 0,
        edge: HTTPEdge = HTTPEdge(), started: @escaping @Sendable (Int) -> Void = { _ in }
    ) -> [Component] {
        let http = HTTPLimits(
            bodyBytesMax: limits.bodyBytesMax, headerBytesMax: 16_384, connectionCountMax: connectionCountMax,
            networkConnectionCountMax: networkConnectionCountMax, idleMax: limits.requestMax,
            headMax: limits.requestMax, bodyMax: limits.requestMax)
        return [
            .http(
                "onboarding", host: host, port: port, limits: http, edge: edge, started: started,
                webSocket: socket.route
            ) { addRoutes(to: $0) },
            .service("sessions", hub),
        ] + services.map { .service("sessions", $0) }
    }

    /// Closes the database pools after their work in progress.
    func close() { for pool in pools { pool.stop() } }

    private func addRoutes(to router: Router<EdgeContext>) {
        page?.addRoutes(to: router)
        app?.addRoutes(to: router)
        router.post("/register_device") { request, context in try await register.handle(request, context) }
        router.post("/v1/token") { request, context in try await token.handle(request, context) }
        router.post("/v1/logout") { request, context in try await logout.handle(request, context) }
        router.get("/sessions/{session}") { request, context in try await explain(request, context) }
        router.get("/auth_callback") { request, context in
            await page(request, context) { fields, client in try await login.finish(fields, from: client) }
        }
        router.post("/auth_confirm") { request, context in
            let body = try await request.body.collect(upTo: limits.bodyBytesMax)
            return await page(request, context, String(buffer: body)) { fields, client in
                try await login.confirm(fields, from: client)
            }
        }
    }

    @concurrent private func page(
        _ request: Request, _ context: EdgeContext, _ form: String? = nil,
        _ body: (FormFields, String) async throws -> LoginFlow.Page
    ) async -> Response {
        guard let fields = FormFields(form ?? request.uri.query ?? "") else { return Pages.response(.linkInvalid) }
        do {
            return Pages.response(try await body(fields, clients.text(request, context)))
        } catch {
            logger.warning("login request failed", metadata: ["error": "\(error)"])
            return Pages.unavailable
        }
    }

    /// Reports why a session's URL opens no WebSocket.
    @concurrent private func explain(_ request: Request, _ context: EdgeContext) async throws -> Response {
        let client = clients.text(request, context)
        let id = SessionSocket.session(in: request.uri.path)
        let limits = limits
        let problem = try await mappingDatabaseErrors {
            try await register.pool.run { connection in
                try SessionSocket.objection(to: id, from: client, limits, on: &connection)
            }
        }
        throw problem ?? Problems.upgradeNeeded
    }
}

import HTTPServer
import Hummingbird
import Identity
import Logging
import ObjectStore
import Postgres
import Secrets
import ServiceRuntime

/// The routes of the device API, with their connection pools.
struct Gateway: Sendable {
    let directory: EnvironmentDirectory
    let hub: LiveHub
    private let realms: RealmsRoute
    private let deliveries: DeliveriesRoute
    private let outline: OutlineRoute
    private let schema: SchemaRoute
    private let sync: SyncRoute
    private let buckets: BucketsRoute
    private let mutations: MutationsRoute
    private let blobs: BlobsRoute
    private let credentials: CredentialsRoute
    private let pools: [Pool]
    private let commits: CommitPools

    /// Connects to the database, checks its schema and loads the environments.
    ///
    /// - Parameters:
    ///   - secrets: Encrypts people's credentials; cannot decrypt them.
    ///   - fetch: Downloads a JWKS document.
    init(
        database: String, limits: GatewayLimits, tokens: TokenVerifier.Limits,
        clients: ClientAddress = ClientAddress(), health: Health? = nil, secrets: SecretBox, logger: Logger,
        fetch: @escaping @Sendable (String) async throws -> [UInt8]
    ) async throws {
        let pool = try Pool(database, size: limits.poolSize, check: Lineage.check)
        let commits = try CommitPools(database, limits)
        try await pool.run { connection in try Schema.check(on: &connection, oldest: AwaitedPositions.schemaOldest) }
        let directory = EnvironmentDirectory(pool: pool, health: health, logger: logger)
        try await directory.refresh()
        let livePool = try Pool(database, size: limits.livePoolSize, check: Lineage.check)
        let watchPool = try Pool(database, size: 1, check: Lineage.check)
        let kinds = KindDirectory(pool: pool)
        let hub = try LiveHub(
            pool: livePool, watchPool: watchPool, limits: limits, names: kinds.names, logger: logger)
        directory.onRefresh { hub.close(where: directory.isRemoved) }
        let verifier = TokenVerifier(limits: tokens, environments: { directory.identities }, fetch: fetch)
        let authentication = Authentication(
            verifier: verifier, directory: directory, pool: pool, clients: clients, logger: logger)
        let numbers = RealmNumbers()
        pools = [pool, livePool, watchPool]
        self.commits = commits
        self.directory = directory
        self.hub = hub
        realms = RealmsRoute(authentication: authentication, pool: pool, numbers: numbers, kinds: kinds)
        schema = SchemaRoute(authentication: authentication, pool: pool)
        deliveries = DeliveriesRoute(authentication: authentication, pool: pool)
        outline = OutlineRoute(authentication: authentication, pool: pool)
        let services = SyncServices(pool: pool, numbers: numbers, hub: hub, kinds: kinds, limits: limits)
        sync = SyncRoute(authentication: authentication, services: services)
        buckets = BucketsRoute(authentication: authentication, services: services)
        blobs = BlobsRoute(
            authentication: authentication, pool: pool, numbers: numbers,
            store: BlobStore(pool: pool, unreferencedCountMax: limits.unreferencedBlobCountMax))
        credentials = CredentialsRoute(
            authentication: authentication, pool: pool, numbers: numbers, secrets: secrets)
        mutations = MutationsRoute(authentication: authentication, limits: limits, kinds: kinds) { environment in
            let store = MutationStore(environment: environment, storedResultCountMax: limits.storedResultCountMax)
            return GroupCommit(
                MutationBatch(store: store, numbers: numbers), pools: commits, waitingMax: limits.waitingMax,
                committed: { hub.committed(in: environment) })
        }
    }

    /// Returns the components to run. At a shutdown the live streams end before the server waits for its connections.
    func components(
        host: String, port: Int, limits: HTTPLimits = HTTPLimits(), edge: HTTPEdge = HTTPEdge(),
        started: @escaping @Sendable (Int) -> Void = { _ in }
    ) -> [Component] {
        [
            .service("environments", directory),
            .http("device-api", host: host, port: port, limits: limits, edge: edge, started: started) {
                addRoutes(to: $0)
            },
            .service("live", hub),
        ]
    }

    /// Closes the database connections once their queries are finished.
    func close() {
        for pool in pools { pool.stop() }
        commits.stop()
    }

    private func addRoutes(to router: Router<EdgeContext>) {
        router.get("/v1/realms") { request, context in try await realms.handle(request, context) }
        router.get("/v1/deliveries") { request, context in try await deliveries.handle(request, context) }
        router.get("/v1/outline") { request, context in try await outline.handle(request, context) }
        router.get("/v1/schema") { request, context in try await schema.handle(request, context) }
        router.post("/v1/sync") { request, context in try await sync.handle(request, context) }
        router.post("/sync/stream") { request, context in try await buckets.stream(request, context) }
        router.post("/sync/checkpoint-request") { request, context in
            try await buckets.checkpointRequest(request, context)
        }
        router.get("/write-checkpoint2.json") { request, context in
            try await buckets.writeCheckpoint(request, context)
        }
        router.post("/v1/mutations") { request, context in try await mutations.handle(request, context) }
        router.post("/v1/uploads") { request, context in try await mutations.handleUploads(request, context) }
        router.put("/v1/blobs/{id}") { request, context in try await blobs.put(request, context) }
        router.get("/v1/blobs/{id}") { request, context in try await blobs.get(request, context) }
        router.put("/v1/credentials/compass") { request, context in try await credentials.put(request, context) }
        router.delete("/v1/credentials/compass") { request, context in try await credentials.delete(request, context) }
    }
}

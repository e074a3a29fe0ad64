import ServiceSettings

/// The settings of `realm-gateway`.
enum Settings {
    static let httpPort = Setting.httpPort(default: 8080)
    static let poolSize = Setting(
        "database.pool.size", .integer(1...64), default: "4", help: "connections that read for devices")
    static let commitPoolSize = Setting(
        "database.commit.pool.size", .integer(1...64), default: "2",
        help: "connections that commit mutations; each environment uses at most one")
    static let livePoolSize = Setting(
        "database.live.pool.size", .integer(1...64), default: "2",
        help: "connections that read live changes; each environment uses at most one")
    static let waitingMax = Setting(
        "mutations.waiting.max", .integer(1...100_000), default: "1000",
        help: "queued mutation requests per environment; more get 503")
    static let catchUpMax = Setting(
        "sync.catchup.max", .integer(1...1_000_000), default: "20000",
        help: "lag in positions beyond which a device downloads its realms again")
    static let queueBytesMax = Setting(
        "sync.queue.bytes.max", .integer(4096...16_777_216), default: "262144",
        help: "bytes of a live device's send buffer; on overflow it reads the database")
    static let lagMax = Setting(
        "sync.lag.max", .duration(.seconds(1) ... .seconds(3600)), default: "60s",
        help: "write timeout of a live stream, after which it is disconnected")
    static let liveInterval = Setting(
        "live.interval", .duration(.milliseconds(1) ... .seconds(10)), default: "5ms",
        help: "poll interval for changes while there are some")
    static let liveIdleInterval = Setting(
        "live.idle.interval", .duration(.milliseconds(1) ... .seconds(10)), default: "25ms",
        help: "poll interval of environments without recent changes, while others have some")
    static let keepalive = Setting(
        "live.keepalive", .duration(.seconds(1) ... .seconds(300)), default: "20s",
        help: "interval of keepalive lines on an idle live stream")
    static let tokenSkewMax = Setting(
        "token.skew.max", .duration(.seconds(0) ... .seconds(600)), default: "60s",
        help: "maximum clock difference to the identity provider")

    static let all: [Setting] =
        [
            httpPort, .databaseURL, .secretKeys, poolSize, commitPoolSize, livePoolSize, waitingMax, catchUpMax,
            queueBytesMax,
            lagMax, liveInterval, liveIdleInterval, keepalive, tokenSkewMax, .httpHeadMax, .httpBodyMax,
        ] + Setting.edge
}

/// The limits of the device API.
struct GatewayLimits: Sendable {
    var poolSize = Settings.poolSize.defaultInteger
    var commitPoolSize = Settings.commitPoolSize.defaultInteger
    var livePoolSize = Settings.livePoolSize.defaultInteger
    /// Queued mutation requests per environment.
    var waitingMax = Settings.waitingMax.defaultInteger
    /// Maximum time that mutations wait for a lock that another transaction holds.
    var lockedMax = Duration.seconds(10)
    var mutationsBodyBytesMax = 1 << 20
    var mutationCountMax = 500
    var syncBodyBytesMax = 512 << 10
    var syncRealmCountMax = 1_000
    /// If a device lags by more positions, it downloads its realms instead of reading the change log.
    var catchUpCountMax = Int64(Settings.catchUpMax.defaultInteger)
    /// Entries per page of the change log.
    var changeCountMax = 1_000
    /// Objects per page of a realm; fewer if they are large.
    var pageCountMax = 2_000
    /// Realms per page of an environment's download.
    var pageRealmCountMax = 256
    /// Size of a live device's send buffer.
    var queueBytesMax = Settings.queueBytesMax.defaultInteger
    /// Write timeout of a live stream.
    var lagMax = Settings.lagMax.defaultDuration
    var liveInterval = Settings.liveInterval.defaultDuration
    var liveIdleInterval = Settings.liveIdleInterval.defaultDuration
    var keepaliveMax = Settings.keepalive.defaultDuration
    /// Blobs of one caller that no object references.
    var unreferencedBlobCountMax: Int64 = 50
    /// Results stored per client, for retries.
    var storedResultCountMax: Int64 = 10_000

    init() {}

    init(_ configuration: Configuration) throws(ConfigurationError) {
        poolSize = try configuration.integer(Settings.poolSize)
        commitPoolSize = try configuration.integer(Settings.commitPoolSize)
        livePoolSize = try configuration.integer(Settings.livePoolSize)
        waitingMax = try configuration.integer(Settings.waitingMax)
        catchUpCountMax = Int64(try configuration.integer(Settings.catchUpMax))
        queueBytesMax = try configuration.integer(Settings.queueBytesMax)
        lagMax = try configuration.duration(Settings.lagMax)
        liveInterval = try configuration.duration(Settings.liveInterval)
        liveIdleInterval = try configuration.duration(Settings.liveIdleInterval)
        keepaliveMax = try configuration.duration(Settings.keepalive)
    }
}

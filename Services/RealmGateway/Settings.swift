import ServiceSettings

/// What `realm-gateway` can be told.
enum Settings {
    static let httpPort = Setting.httpPort(default: 8080)
    static let poolSize = Setting(
        "database.pool.size", .integer(1...64), default: "4", help: "connections that read for devices")
    static let commitPoolSize = Setting(
        "database.commit.pool.size", .integer(1...64), default: "2",
        help: "connections that commit mutations; an environment uses one at a time")
    static let livePoolSize = Setting(
        "database.live.pool.size", .integer(1...64), default: "2",
        help: "connections that read changes for live devices; an environment uses one at a time")
    static let waitingMax = Setting(
        "mutations.waiting.max", .integer(1...100_000), default: "1000",
        help: "requests of one environment that wait for their transaction; more are answered 503")
    static let catchUpMax = Setting(
        "sync.catchup.max", .integer(1...1_000_000), default: "20000",
        help: "a device that lags by more positions reads its realms instead of the change log")
    static let queueBytesMax = Setting(
        "sync.queue.bytes.max", .integer(4096...16_777_216), default: "262144",
        help: "bytes kept for a live device that reads slowly; beyond, it catches up from the database")
    static let lagMax = Setting(
        "sync.lag.max", .duration(.seconds(1) ... .seconds(3600)), default: "60s",
        help: "a live device that takes nothing for longer is disconnected")
    static let liveInterval = Setting(
        "live.interval", .duration(.milliseconds(1) ... .seconds(10)), default: "5ms",
        help: "how often changes are looked for while there are some")
    static let liveIdleInterval = Setting(
        "live.idle.interval", .duration(.milliseconds(1) ... .seconds(10)), default: "25ms",
        help: "how often changes are looked for after some seconds without any")
    static let keepalive = Setting(
        "live.keepalive", .duration(.seconds(1) ... .seconds(300)), default: "20s",
        help: "the longest silence of a live stream")
    static let tokenSkewMax = Setting(
        "token.skew.max", .duration(.seconds(0) ... .seconds(600)), default: "60s",
        help: "by how much the identity provider's clock may differ")

    static let all: [Setting] =
        [
            httpPort, .databaseURL, .secretKeys, poolSize, commitPoolSize, livePoolSize, waitingMax, catchUpMax,
            queueBytesMax,
            lagMax, liveInterval, liveIdleInterval, keepalive, tokenSkewMax, .httpHeadMax, .httpBodyMax,
        ] + Setting.edge
}

/// The bounds of the device API.
struct GatewayLimits: Sendable {
    var poolSize = Settings.poolSize.defaultInteger
    var commitPoolSize = Settings.commitPoolSize.defaultInteger
    var livePoolSize = Settings.livePoolSize.defaultInteger
    /// Requests of one environment that wait for their transaction.
    var waitingMax = Settings.waitingMax.defaultInteger
    /// How long mutations wait for somebody who holds a lock of their environment's.
    var lockedMax = Duration.seconds(10)
    var mutationsBodyBytesMax = 1 << 20
    var mutationCountMax = 500
    var syncBodyBytesMax = 512 << 10
    var syncRealmCountMax = 1_000
    /// A device that lags by more positions reads its realms instead of the change log.
    var catchUpCountMax = Int64(Settings.catchUpMax.defaultInteger)
    /// Pointers read from the change log at a time.
    var changeCountMax = 1_000
    /// Objects read from a realm at a time; fewer when they are large.
    var pageCountMax = 2_000
    /// Realms of the whole environment looked through at a time.
    var pageRealmCountMax = 256
    /// Bytes queued for a live device.
    var queueBytesMax = Settings.queueBytesMax.defaultInteger
    /// How long a live device may take nothing.
    var lagMax = Settings.lagMax.defaultDuration
    var liveInterval = Settings.liveInterval.defaultDuration
    var liveIdleInterval = Settings.liveIdleInterval.defaultDuration
    var keepaliveMax = Settings.keepalive.defaultDuration
    /// A caller's blobs that nothing names.
    var unnamedBlobCountMax: Int64 = 50
    /// Answers kept per client for repeats.
    var answersKeptMax: Int64 = 10_000

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

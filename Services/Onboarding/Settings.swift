import HTTPServer
import ServiceRuntime
import ServiceSettings

/// What `onboarding` can be told.
enum Settings {
    static let httpPort = Setting.httpPort(default: 8082)
    static let url = Setting(
        "onboarding.url", .text(lengthMax: 1024), default: nil,
        help: "where browsers reach this service, for example https://onboarding.example.com; the redirect address "
            + "registered at identity providers is this with /auth_callback. https, or http on this machine")
    static let sessionMax = Setting(
        "onboarding.session.max", .duration(.seconds(1) ... .seconds(86_400)), default: "15m",
        help: "how long a device has to come in")
    static let poolSize = Setting(
        "database.pool.size", .integer(1...64), default: "4",
        help: "connections to PostgreSQL that answer requests, beside three that follow events and realms")
    static let addressMax = Setting(
        "onboarding.address.max", .integer(1...1_000_000), default: "10",
        help: "registrations of one e-mail address from one network address in a minute, over all instances")
    static let clientMax = Setting(
        "onboarding.client.max", .integer(1...1_000_000), default: "60",
        help: "registrations, and wrong guesses, from one network address in a minute, over all instances")
    static let domainMax = Setting(
        "onboarding.domain.max", .integer(1...1_000_000), default: "600",
        help: "registrations of one e-mail domain in a minute, over all instances; beyond it each network address has "
            + "as many left as onboarding.address.max")
    static let confirm = Setting(
        "onboarding.confirm", .choice(["different", "always", "never"]), default: "different",
        help: "when a person is asked whether the device is theirs: when the browser's network address is another than "
            + "the device's, always, or never")
    static let pingInterval = Setting(
        "onboarding.ping", .duration(.seconds(1) ... .seconds(300)), default: "20s",
        help: "how often a waiting device is asked whether it is there")
    static let answerMax = Setting(
        "onboarding.answer.max", .duration(.seconds(1) ... .seconds(300)), default: "20s",
        help: "how long a device may leave a ping unanswered, or read nothing")
    static let requestMax = Setting(
        "onboarding.request.max", .duration(.milliseconds(100) ... .seconds(120)), default: "10s",
        help: "how long a request's head, and its body, may take to arrive")
    static let interval = Setting(
        "onboarding.interval", .duration(.milliseconds(1) ... .seconds(10)), default: "25ms",
        help: "how often events are looked for")
    static let devicePage = Setting(
        "onboarding.device.page", .flag, default: "false",
        help: "serve a page at /device on which a person walks through as a phone would; for demonstrations")
    static let gateway = Setting(
        "onboarding.device.gateway", .text(lengthMax: 1024), default: "",
        help: "the device API's address, for that page")

    static let all: [Setting] =
        [
            httpPort, .databaseURL, .secretKeys, url, sessionMax, poolSize, addressMax, clientMax, domainMax, confirm,
            pingInterval, answerMax, requestMax, interval, devicePage, gateway,
        ] + Setting.edge
}

/// When a person is asked whether the device that waits is theirs.
enum Confirmation: String, Sendable {
    /// When browser and device have different network addresses.
    case different
    case always
    case never
}

/// The bounds of onboarding.
struct OnboardingLimits: Sendable {
    var sessionMax = Settings.sessionMax.defaultDuration
    var poolSize = Settings.poolSize.defaultInteger
    var addressCountMax = Settings.addressMax.defaultInteger
    var clientCountMax = Settings.clientMax.defaultInteger
    var domainCountMax = Settings.domainMax.defaultInteger
    var requestMax = Settings.requestMax.defaultDuration
    var interval = Settings.interval.defaultDuration
    var confirm = Confirmation.different
    var socket = WebSocketRoute.Limits()
    /// Logins of one session, failed ones included.
    var loginCountMax = 6
    /// Renewals of one device's token in a minute.
    var renewalCountMax = 20
    /// How long a renewal may take before another one of the device may begin: a discovery, a call to the provider and
    /// two waits for the database, with room.
    var leaseMax = Duration.seconds(60)
    /// How long the end of a login waits for a database that is away.
    var patienceMax = Duration.seconds(10)
    /// Maximum time that each step of a registration waits for a database that is busy, or unavailable.
    var registerPatienceMax = Duration.seconds(5)
    /// The least time between two readings of a provider's keys.
    var refetchMin = Duration.seconds(1)
    /// Longest body of a request.
    var bodyBytesMax = 4_096

    init() {}

    init(_ configuration: Configuration) throws(ConfigurationError) {
        sessionMax = try configuration.duration(Settings.sessionMax)
        poolSize = try configuration.integer(Settings.poolSize)
        addressCountMax = try configuration.integer(Settings.addressMax)
        clientCountMax = try configuration.integer(Settings.clientMax)
        domainCountMax = try configuration.integer(Settings.domainMax)
        requestMax = try configuration.duration(Settings.requestMax)
        interval = try configuration.duration(Settings.interval)
        confirm = Confirmation(rawValue: try configuration.text(Settings.confirm)) ?? .different
        socket.pingInterval = try configuration.duration(Settings.pingInterval)
        socket.answerMax = try configuration.duration(Settings.answerMax)
    }

    /// Behind a proxy that is not named, device and browser would both have its address: nobody would be asked whether
    /// the device is theirs, and all would share one bound.
    func check(url: String, edge: HTTPEdge, proxyCount: Int) throws(ConfigurationError) {
        guard url.hasPrefix("https:"), edge.tls == nil, proxyCount == 0, confirm == .different else { return }
        throw ConfigurationError(
            "\(Setting.httpProxies.variable) must say how many proxies are in front: \(Settings.url.variable) is "
                + "https, and without \(Setting.tlsCertificate.variable) that is not this service; or set "
                + "\(Settings.confirm.variable) to always or never")
    }
}

import HTTPServer
import ServiceRuntime
import ServiceSettings

/// The settings of `onboarding`.
enum Settings {
    static let httpPort = Setting.httpPort(default: 8082)
    static let url = Setting(
        "onboarding.url", .text(lengthMax: 1024), default: nil,
        help:
            "public base URL of this service, for example https://onboarding.example.com; the redirect URL registered "
            + "at identity providers is this URL with /auth_callback. https, or http on localhost")
    static let sessionMax = Setting(
        "onboarding.session.max", .duration(.seconds(1) ... .seconds(86_400)), default: "15m",
        help: "lifetime of a device's session, within which the login must complete")
    static let poolSize = Setting(
        "database.pool.size", .integer(1...64), default: "4",
        help: "PostgreSQL connections for requests, in addition to three for events and realms")
    static let addressMax = Setting(
        "onboarding.address.max", .integer(1...1_000_000), default: "10",
        help: "registrations per minute of one e-mail address from one network address, over all instances")
    static let clientMax = Setting(
        "onboarding.client.max", .integer(1...1_000_000), default: "60",
        help: "registrations, and invalid ids, per minute from one network address, over all instances")
    static let domainMax = Setting(
        "onboarding.domain.max", .integer(1...1_000_000), default: "600",
        help:
            "registrations per minute of one e-mail domain, over all instances; beyond it each network address still "
            + "has onboarding.address.max")
    static let confirm = Setting(
        "onboarding.confirm", .choice(["different", "always", "never"]), default: "different",
        help:
            "when a person must confirm the device: if the browser's network address differs from the device's, "
            + "always, or never")
    static let pingInterval = Setting(
        "onboarding.ping", .duration(.seconds(1) ... .seconds(300)), default: "20s",
        help: "interval of WebSocket pings to waiting devices")
    static let responseMax = Setting(
        "onboarding.answer.max", .duration(.seconds(1) ... .seconds(300)), default: "20s",
        help: "timeout of a ping's reply, and of a device that reads nothing")
    static let requestMax = Setting(
        "onboarding.request.max", .duration(.milliseconds(100) ... .seconds(120)), default: "10s",
        help: "timeout of receiving a request's head, and of its body")
    static let interval = Setting(
        "onboarding.interval", .duration(.milliseconds(1) ... .seconds(10)), default: "25ms",
        help: "interval at which events are polled")
    static let devicePage = Setting(
        "onboarding.device.page", .flag, default: "false",
        help: "serve a page at /device that simulates a device; for demonstrations")
    static let gateway = Setting(
        "onboarding.device.gateway", .text(lengthMax: 1024), default: "",
        help: "base URL of the device API, for the page at /device and for the app, whose browsers must reach it")
    static let appFolder = Setting(
        "onboarding.app.folder", .text(lengthMax: 4096), default: "",
        help: "folder of the field app, served at /app/ and read at start; without it there is no app")

    static let all: [Setting] =
        [
            httpPort, .databaseURL, .secretKeys, url, sessionMax, poolSize, addressMax, clientMax, domainMax, confirm,
            pingInterval, responseMax, requestMax, interval, devicePage, gateway,
            appFolder,
        ] + Setting.edge
}

/// The condition under which a person must confirm the device.
enum Confirmation: String, Sendable {
    /// If browser and device have different network addresses.
    case different
    case always
    case never
}

/// The limits of onboarding.
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
    /// Login attempts per session, failed ones included.
    var loginCountMax = 6
    /// Renewals of one device's token per minute.
    var renewalCountMax = 20
    /// The time during which one renewal exclusively owns a device: covers a discovery, a call to the provider and two
    /// database retries.
    var leaseMax = Duration.seconds(60)
    /// The time for which a login's completion retries while the database is unavailable.
    var retryMax = Duration.seconds(10)
    /// The time for which each step of a registration retries while the database is busy or unavailable.
    var registerRetryMax = Duration.seconds(5)
    /// The minimum interval between fetches of a provider's keys.
    var refetchMin = Duration.seconds(1)
    /// The limit of a request body's size.
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
        socket.responseMax = try configuration.duration(Settings.responseMax)
    }

    /// Rejects an https URL without declared proxies: behind an undeclared proxy, device and browser would have the
    /// same address, so that confirmation would be skipped and all clients would share one rate limit.
    func check(url: String, edge: HTTPEdge, proxyCount: Int) throws(ConfigurationError) {
        guard url.hasPrefix("https:"), edge.tls == nil, proxyCount == 0, confirm == .different else { return }
        throw ConfigurationError(
            "\(Setting.httpProxies.variable) must be the number of proxies in front of this service: "
                + "\(Settings.url.variable) is https, but \(Setting.tlsCertificate.variable) is not set; or set "
                + "\(Settings.confirm.variable) to always or never")
    }
}

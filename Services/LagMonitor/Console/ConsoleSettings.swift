import Essentials
import HTTPServer
import Identity
import Model
import ServiceSettings

extension Settings {
    static let consoleURL = Setting(
        "console.url", .text(lengthMax: 1024), default: "",
        help:
            "public base URL of the console, for example https://console.example.com; the redirect URL registered at "
            + "the identity provider is this URL with /callback. https, or http on localhost; empty: the console is "
            + "disabled")
    static let consoleHost = Setting(
        "console.host", .text(lengthMax: 255), default: "127.0.0.1", help: "listening address of the console")
    static let consolePort = Setting(
        "console.port", .integer(0...65535), default: "8084", help: "port of console.host; 0 selects a free one")
    static let consoleIssuer = Setting(
        "console.issuer", .text(lengthMax: 1024), default: "",
        help: "the operators' OpenID provider, equal to iss in its tokens")
    static let consoleClientID = Setting(
        "console.client.id", .text(lengthMax: 255), default: "", help: "client id of the console at that provider")
    static let consoleClientSecret = Setting(
        "console.client.secret", .text(lengthMax: 4096), default: "", isSecret: true,
        help: "client secret of console.client.id")
    static let consoleScopes = Setting(
        "console.scopes", .list(countMax: 16), default: "openid,email,profile",
        help: "scopes that the console requests")
    static let consoleAdministrators = Setting(
        "console.administrators", .list(countMax: 200), default: "",
        help: "administrators: e-mail addresses, or claims of the ID token such as groups=fieldpost-admins")
    static let consoleDomains = Setting(
        "console.domains", .list(countMax: 32), default: "",
        help:
            "e-mail domains, in lower case, whose addresses are accepted without email_verified; only if the issuer "
            + "is a single tenant of Microsoft Entra ID; empty: tokens must have email_verified")
    static let consoleServices = Setting(
        "console.services", .list(countMax: 64), default: "",
        help: "admin addresses of the services that the console polls: name=URL, such as "
            + "realm-gateway=http://10.0.0.7:18092; a name may occur several times")
    static let consoleSessionMax = Setting(
        "console.session.max", .duration(.seconds(60) ... .seconds(86_400)), default: "8h",
        help: "lifetime of a session")
    static let consoleSessionIdle = Setting(
        "console.session.idle", .duration(.seconds(1) ... .seconds(86_400)), default: "30m",
        help: "lifetime of a session without activity; automatic refreshes do not count")

    static let console: [Setting] = [
        consoleURL, consoleHost, consolePort, consoleIssuer, consoleClientID, consoleClientSecret, consoleScopes,
        consoleAdministrators, consoleDomains, consoleServices, consoleSessionMax, consoleSessionIdle, .tlsCertificate,
        .tlsKey, .httpProxies,
    ]
}

/// The configuration of the console.
struct ConsoleSettings: Sendable {
    /// A service's admin address.
    struct Service: Sendable, Equatable {
        let name: String
        /// The base URL, without a trailing slash.
        let url: String
    }

    /// The public origin, without a trailing slash.
    var origin: String
    var issuer: String
    var client: ProviderClient
    var scopes = ["openid", "email", "profile"]
    var administrators: [AdministratorRule.Entry]
    var domains: [String] = []
    var services: [Service] = []
    var sessionMax = Duration.seconds(28_800)
    var idleMax = Duration.seconds(1_800)
    var clients = ClientAddress()
    /// Whether browsers use TLS, to this service or to a proxy: cookies are then `Secure`.
    var isSecure: Bool { origin.hasPrefix("https:") }

    init(origin: String, issuer: String, client: ProviderClient, administrators: [AdministratorRule.Entry]) {
        (self.origin, self.issuer, self.client, self.administrators) = (origin, issuer, client, administrators)
    }

    /// - Returns: `nil` if the console is disabled.
    /// - Throws: If a required setting is missing or not valid.
    init?(_ configuration: Configuration) throws(ConfigurationError) {
        guard let url = try configuration.optionalText(Settings.consoleURL) else { return nil }
        let origin = url.hasSuffix("/") ? String(url.dropLast()) : url
        guard OpenIDProvider.isUsable(origin), origin.split(separator: "/").count == 2 else {
            throw ConfigurationError(
                "\(Settings.consoleURL.variable) must be an https URL without a path, or an http URL of localhost")
        }
        func required(_ setting: Setting) throws(ConfigurationError) -> String {
            guard let text = try configuration.optionalText(setting) else {
                throw ConfigurationError("\(setting.variable) is not set; it is required by the console")
            }
            return text
        }
        let client = ProviderClient(
            id: try required(Settings.consoleClientID), secret: try required(Settings.consoleClientSecret))
        _ = try required(Settings.consoleAdministrators)
        var administrators: [AdministratorRule.Entry] = []
        for text in try configuration.list(Settings.consoleAdministrators) {
            guard let entry = AdministratorRule.entry(text) else {
                throw ConfigurationError(
                    "\(Settings.consoleAdministrators.variable): '\(text)' is neither an address nor claim=value")
            }
            administrators.append(entry)
        }
        // Without TLS, an attacker on the network path could impersonate the provider.
        let issuer = try required(Settings.consoleIssuer)
        guard OpenIDProvider.isUsable(issuer) else {
            throw ConfigurationError(
                "\(Settings.consoleIssuer.variable) must be an https URL, or an http URL of localhost")
        }
        self.init(origin: origin, issuer: issuer, client: client, administrators: administrators)
        scopes = try configuration.list(Settings.consoleScopes)
        domains = try Self.domains(try configuration.list(Settings.consoleDomains), of: issuer)
        sessionMax = try configuration.duration(Settings.consoleSessionMax)
        idleMax = try configuration.duration(Settings.consoleSessionIdle)
        clients = ClientAddress(proxyCount: try configuration.integer(.httpProxies))
        services = try Self.services(try configuration.list(Settings.consoleServices))
    }

    /// Validates the domains. Shared issuers are rejected: the administrators of any tenant can assert any address.
    private static func domains(_ texts: [String], of issuer: String) throws(ConfigurationError) -> [String] {
        guard !EntraTenant.isShared(issuer: issuer) else {
            throw ConfigurationError(
                "\(Settings.consoleIssuer.variable): '\(issuer)' is shared by many tenants of Microsoft Entra ID, "
                    + "whose administrators can assert any address; use your tenant's issuer, "
                    + "https://login.microsoftonline.com/TENANT-ID/v2.0")
        }
        for text in texts where EmailAddress("a@" + text)?.domain.utf8.elementsEqual(text.utf8) != true {
            throw ConfigurationError(
                "\(Settings.consoleDomains.variable): '\(text)' is not a domain; it must be two or more labels of "
                    + "lower-case letters, digits and inner hyphens, such as example.com, and xn--… for others")
        }
        guard texts.isEmpty || EntraTenant(issuer: issuer) != nil else {
            throw ConfigurationError(
                "\(Settings.consoleDomains.variable) requires a tenant of Microsoft Entra ID, whose "
                    + "\(Settings.consoleIssuer.variable) is https://login.microsoftonline.com/TENANT-ID/v2.0; "
                    + "tokens of other providers must have email_verified")
        }
        return texts
    }

    private static func services(_ texts: [String]) throws(ConfigurationError) -> [Service] {
        var services: [Service] = []
        for text in texts {
            let parts = text.split(separator: "=", maxSplits: 1).map(String.init)
            guard parts.count == 2, parts[1].hasPrefix("http://") || parts[1].hasPrefix("https://") else {
                throw ConfigurationError(
                    "\(Settings.consoleServices.variable): '\(text)' is not name=URL, such as "
                        + "realm-gateway=http://10.0.0.7:18092")
            }
            services.append(
                Service(name: parts[0], url: parts[1].hasSuffix("/") ? String(parts[1].dropLast()) : parts[1]))
        }
        return services
    }
}

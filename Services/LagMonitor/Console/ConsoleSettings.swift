import Essentials
import HTTPServer
import Identity
import Model
import ServiceSettings

extension Settings {
    static let consoleURL = Setting(
        "console.url", .text(lengthMax: 1024), default: "",
        help: "where browsers reach the console, for example https://console.example.com; the redirect address "
            + "registered at the identity provider is this with /callback. https, or http on this machine; empty: "
            + "there is no console")
    static let consoleHost = Setting(
        "console.host", .text(lengthMax: 255), default: "127.0.0.1", help: "address that the console listens on")
    static let consolePort = Setting(
        "console.port", .integer(0...65535), default: "8084", help: "port of console.host; 0 takes a free one")
    static let consoleIssuer = Setting(
        "console.issuer", .text(lengthMax: 1024), default: "",
        help: "the operators' OpenID provider, exactly as its tokens name it in iss")
    static let consoleClientID = Setting(
        "console.client.id", .text(lengthMax: 255), default: "", help: "the console's client at that provider")
    static let consoleClientSecret = Setting(
        "console.client.secret", .text(lengthMax: 4096), default: "", isSecret: true,
        help: "the secret of console.client.id")
    static let consoleScopes = Setting(
        "console.scopes", .list(countMax: 16), default: "openid,email,profile",
        help: "what the console asks the provider for")
    static let consoleAdministrators = Setting(
        "console.administrators", .list(countMax: 200), default: "",
        help: "who may use the console: e-mail addresses, or claims of the ID token such as groups=fieldpost-admins")
    static let consoleDomains = Setting(
        "console.domains", .list(countMax: 32), default: "",
        help: "e-mail domains, in lower case, whose addresses the provider vouches for without saying "
            + "email_verified: only with the issuer of one tenant of Microsoft Entra ID; empty: tokens must say "
            + "email_verified")
    static let consoleServices = Setting(
        "console.services", .list(countMax: 64), default: "",
        help: "where the console asks services how they are: name=URL of the admin address, such as "
            + "realm-gateway=http://10.0.0.7:18092; one name may be there several times")
    static let consoleSessionMax = Setting(
        "console.session.max", .duration(.seconds(60) ... .seconds(86_400)), default: "8h",
        help: "how long a sign-in lasts")
    static let consoleSessionIdle = Setting(
        "console.session.idle", .duration(.seconds(1) ... .seconds(86_400)), default: "30m",
        help: "how long a sign-in lasts while nobody does anything; what the page asks by itself does not count")

    static let console: [Setting] = [
        consoleURL, consoleHost, consolePort, consoleIssuer, consoleClientID, consoleClientSecret, consoleScopes,
        consoleAdministrators, consoleDomains, consoleServices, consoleSessionMax, consoleSessionIdle, .tlsCertificate,
        .tlsKey, .httpProxies,
    ]
}

/// What the console is told at the start.
struct ConsoleSettings: Sendable {
    /// A service's admin address.
    struct Service: Sendable, Equatable {
        let name: String
        /// Without a slash at the end.
        let url: String
    }

    /// Where browsers reach it, without a slash at the end: its origin.
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
    /// Whether browsers speak TLS with it, or with a proxy in front of it: cookies are then kept from what is not.
    var isSecure: Bool { origin.hasPrefix("https:") }

    init(
        origin: String, issuer: String, client: ProviderClient, administrators: [AdministratorRule.Entry]
    ) {
        (self.origin, self.issuer, self.client, self.administrators) = (origin, issuer, client, administrators)
    }

    /// - Returns: `nil` when there is to be no console.
    /// - Throws: For a console that lacks something.
    init?(_ configuration: Configuration) throws(ConfigurationError) {
        guard let url = try configuration.optionalText(Settings.consoleURL) else { return nil }
        let origin = url.hasSuffix("/") ? String(url.dropLast()) : url
        guard OpenIDProvider.isUsable(origin), origin.split(separator: "/").count == 2 else {
            throw ConfigurationError(
                "\(Settings.consoleURL.variable) must be an https address without a path, or http on this machine")
        }
        func needed(_ setting: Setting) throws(ConfigurationError) -> String {
            guard let text = try configuration.optionalText(setting) else {
                throw ConfigurationError("\(setting.variable) is not set; the console needs it")
            }
            return text
        }
        let client = ProviderClient(
            id: try needed(Settings.consoleClientID), secret: try needed(Settings.consoleClientSecret))
        _ = try needed(Settings.consoleAdministrators)
        var administrators: [AdministratorRule.Entry] = []
        for text in try configuration.list(Settings.consoleAdministrators) {
            guard let entry = AdministratorRule.entry(text) else {
                throw ConfigurationError(
                    "\(Settings.consoleAdministrators.variable): '\(text)' is neither an address nor claim=value")
            }
            administrators.append(entry)
        }
        // Whoever is on the way to a provider without TLS could speak for it.
        let issuer = try needed(Settings.consoleIssuer)
        guard OpenIDProvider.isUsable(issuer) else {
            throw ConfigurationError(
                "\(Settings.consoleIssuer.variable) must be an https address, or http on this machine")
        }
        self.init(origin: origin, issuer: issuer, client: client, administrators: administrators)
        scopes = try configuration.list(Settings.consoleScopes)
        domains = try Self.domains(try configuration.list(Settings.consoleDomains), of: issuer)
        sessionMax = try configuration.duration(Settings.consoleSessionMax)
        idleMax = try configuration.duration(Settings.consoleSessionIdle)
        clients = ClientAddress(proxyCount: try configuration.integer(.httpProxies))
        services = try Self.services(try configuration.list(Settings.consoleServices))
    }

    /// An issuer that many tenants share lets anybody's tenant name any address.
    private static func domains(_ texts: [String], of issuer: String) throws(ConfigurationError) -> [String] {
        guard !EntraTenant.isShared(issuer: issuer) else {
            throw ConfigurationError(
                "\(Settings.consoleIssuer.variable): '\(issuer)' is shared by many tenants of Microsoft Entra ID, "
                    + "whose administrators name any address; it must be that of your own, "
                    + "https://login.microsoftonline.com/TENANT-ID/v2.0")
        }
        for text in texts where EmailAddress("a@" + text)?.domain.utf8.elementsEqual(text.utf8) != true {
            throw ConfigurationError(
                "\(Settings.consoleDomains.variable): '\(text)' is no domain; it must be two or more labels of "
                    + "lower-case letters, digits and inner hyphens, such as example.com, and xn--… for others")
        }
        guard texts.isEmpty || EntraTenant(issuer: issuer) != nil else {
            throw ConfigurationError(
                "\(Settings.consoleDomains.variable) is for a tenant of Microsoft Entra ID, whose "
                    + "\(Settings.consoleIssuer.variable) is https://login.microsoftonline.com/TENANT-ID/v2.0; "
                    + "tokens of other providers must say email_verified")
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

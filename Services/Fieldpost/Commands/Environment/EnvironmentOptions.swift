import ArgumentParser
import Audit
import Backends
import FoundationEssentials
import HTTPClient
import Identity
import Model
import Postgres
import Secrets
import ServiceSettings
import Tenants

/// Options of `environment add` and `environment edit`. Options that are not given keep their stored values.
struct EnvironmentOptions: ParsableArguments {
    static let discussion = """
        --domain, --address and --scope replace all stored values.

        --address-verified-by selects the proof that an address belongs to a person: the token's claim email_verified,
        Microsoft Entra ID's claim xms_edov, or the issuer, for addresses of the environment's domains, if it is the
        issuer of one Entra tenant.

        FILE of --people is a JSON array: [{"email": "ana@example.com", "reference": {…}}]. The reference identifies the
        person in the back end; for sap: personWorkAgreementExternalId, companyCode, businessPartnerUuid; for
        economic: employeeNumber. People who are not in the file are kept.

        The back end economic (e-conomic) is called with two tokens instead of a user: its password is
        appSecretToken:agreementGrantToken, and --backend-user is not needed.

        Settings of --backend-setting:
        \(settings)

        Secrets are not arguments. --client-secret-from and --backend-password-from name an environment variable of
        this command, whose value is sealed with the first of FIELDPOST_SECRET_KEYS. --backend-password-variable names
        one of the services' variables instead, and nothing is stored.
        """

    /// The kinds of back ends that this program has adapters for.
    private static var kinds: String { BackendKind.all.map(\.name).joined(separator: ", ") }

    /// The adapters' settings, for the help text.
    private static var settings: String {
        BackendKind.all.map(\.vocabulary).filter { !$0.settings.isEmpty }.map { vocabulary in
            vocabulary.settings.map { "\(vocabulary.backend) \($0.name): \($0.help)" }.joined(separator: "\n")
        }.joined(separator: "\n")
    }

    @Option(name: .customLong("domain"), help: "Set an e-mail domain of its people; may be repeated.")
    var domains: [String] = []
    @Option(name: .customLong("address"), help: "Set an e-mail address outside the domains; may be repeated.")
    var addresses: [String] = []
    @Flag(help: "Remove all addresses of --address.") var noAddresses = false
    @Option(help: ArgumentHelp("Issuer of the identity provider's tokens.", valueName: "url")) var issuer: String?
    @Option(help: "Audience of the tokens for Fieldpost.") var audience: String?
    @Option(help: ArgumentHelp("URL of the provider's keys. (default: discovered)", valueName: "url"))
    var jwksUrl: String?
    @Option(
        help: ArgumentHelp("URL of the provider's configuration, if not below the issuer.", valueName: "url"))
    var discoveryUrl: String?
    @Flag(help: "Use the provider's configuration below the issuer.") var noDiscoveryUrl = false
    @Option(help: ArgumentHelp("OAuth client id of Fieldpost at the provider.", valueName: "id")) var clientId: String?
    @Option(help: ArgumentHelp("Environment variable with the client secret.", valueName: "variable"))
    var clientSecretFrom: String?
    @Option(name: .customLong("scope"), help: "Request this scope at logins; may be repeated.")
    var scopes: [String] = []
    @Option(help: "Initialise realms on registration or login.") var initialiseOn: String?
    @Option(help: ArgumentHelp("Hide whether an address is registered: yes or no.", valueName: "yes-or-no"))
    var hideUnknown: String?
    @Option(help: "Verify addresses by email_verified (default), xms_edov or issuer.")
    var addressVerifiedBy: AddressVerification?
    @Option(
        help: ArgumentHelp("Days to retain deleted objects and ended shares, 1…3650.", valueName: "days"))
    var deletedRetention: Int32?
    @Option(help: "Kind of back end: \(EnvironmentOptions.kinds), or none for an integration.") var backend: String?
    @Option(help: ArgumentHelp("Base URL of the back end.", valueName: "url")) var backendUrl: String?
    @Option(help: ArgumentHelp("User of Fieldpost at the back end.", valueName: "user")) var backendUser: String?
    @Option(help: ArgumentHelp("Environment variable of the services with the password.", valueName: "variable"))
    var backendPasswordVariable: String?
    @Option(help: ArgumentHelp("Environment variable of this command with the password.", valueName: "variable"))
    var backendPasswordFrom: String?
    @Option(help: ArgumentHelp("Seconds between polls of the back end, 5…86400.", valueName: "seconds"))
    var pollInterval: Int32?
    @Option(help: ArgumentHelp("Seconds between full comparisons, 5…604800.", valueName: "seconds"))
    var fullPollInterval: Int32?
    @Option(help: ArgumentHelp("Maximum entries submitted per second, 1…10000; 0: unlimited.", valueName: "number"))
    var callsPerSecond: Int32?
    @Option(help: ArgumentHelp("Maximum entries per second and person, 1…10000; 0: unlimited.", valueName: "number"))
    var personCallsPerSecond: Int32?
    @Option(
        name: .customLong("backend-setting"),
        help: ArgumentHelp(
            "Set an adapter setting, or remove it without a value; may be repeated.", valueName: "name=value"))
    var backendSettings: [String] = []
    @Option(help: ArgumentHelp("Add or update people from a JSON file.", valueName: "file")) var people: String?

    func validate() throws {
        if let backend, backend != StoredEnvironment.noBackend, BackendKind.named(backend) == nil {
            throw ValidationError(
                "--backend must be one of \(Self.kinds), \(StoredEnvironment.noBackend), not \(backend)")
        }
        if let variable = backendPasswordVariable, variable.isEmpty || variable.hasPrefix("FIELDPOST_") {
            throw ValidationError(
                "--backend-password-variable must not begin with FIELDPOST_: those are the services' settings")
        }
        guard backendPasswordVariable == nil || backendPasswordFrom == nil else {
            throw ValidationError("give --backend-password-variable or --backend-password-from, not both")
        }
        try validateAddresses()
        if let initialiseOn, !["registration", "login"].contains(initialiseOn) {
            throw ValidationError("--initialise-on must be registration or login, not \(initialiseOn)")
        }
        if let hideUnknown, !["yes", "no"].contains(hideUnknown) {
            throw ValidationError("--hide-unknown must be yes or no, not \(hideUnknown)")
        }
        try validateRange("--deleted-retention", deletedRetention, in: DeletionRetention.daysRange, unit: "days")
        try validateRange("--poll-interval", pollInterval, in: 5...86_400, unit: "seconds")
        try validateRange("--full-poll-interval", fullPollInterval, in: 5...604_800, unit: "seconds")
        try validateRange("--calls-per-second", callsPerSecond, in: 0...10_000)
        try validateRange("--person-calls-per-second", personCallsPerSecond, in: 0...10_000)
    }

    private func validateAddresses() throws {
        for case (let option, let url?) in [
            ("--issuer", issuer), ("--jwks-url", jwksUrl), ("--discovery-url", discoveryUrl),
        ] where !OpenIDProvider.isUsable(url) {
            throw ValidationError("\(option) \(url) is not an https URL (http is allowed for this machine only)")
        }
        guard discoveryUrl == nil || !noDiscoveryUrl else {
            throw ValidationError("give --discovery-url or --no-discovery-url, not both")
        }
        if let url = backendUrl {
            guard url.hasPrefix("http://") || url.hasPrefix("https://"), URL(string: url)?.host != nil else {
                throw ValidationError("--backend-url \(url) is not an http or https URL")
            }
        }
        if let domain = domains.first(where: { EmailAddress("a@" + $0) == nil }) {
            throw ValidationError(
                "--domain \(domain) is not a domain of e-mail addresses, such as acme.example (IDN as xn--…)")
        }
        if let address = addresses.first(where: { EmailAddress($0) == nil }) {
            throw ValidationError("--address \(address) is not a usable e-mail address")
        }
    }

    /// Saves the stored environment with the given options applied. The caller has locked the environment.
    func save(over stored: StoredEnvironment, on connection: inout Connection) async throws {
        var environment = changed(stored)
        guard environment.hasBackend || !describesBackend else {
            throw CommandFailure(
                "--backend-…, --…poll-interval and --…calls-per-second describe a back end and exclude "
                    + "--backend none")
        }
        if environment.hasBackend, !environment.backend.isEmpty {
            _ = try BackendKind.named(environment.backend, of: environment.name)
        }
        let missing = missing(environment)
        guard missing.isEmpty else { throw CommandFailure("missing: \(missing.joined(separator: ", "))") }
        try checkAddressVerification(environment)
        try set(backendSettings, of: &environment)
        if let conflict = try EnvironmentStore.conflict(of: environment, on: &connection) {
            throw CommandFailure(conflict)
        }
        let people =
            try people.map {
                try EnvironmentCommand.readPeople($0, domains: environment.domains, addresses: environment.addresses)
            } ?? []
        if environment.jwksURL.isEmpty { environment.jwksURL = try await discoverKeys(environment) }
        if clientSecretFrom != nil || backendPasswordFrom != nil { try seal(&environment, on: &connection) }
        let changes = environment.changes(from: stored) + (people.isEmpty ? [] : ["people"])
        do {
            try connection.run(
                try EnvironmentStore.save(environment)
                    + [
                        try EnvironmentStore.addPeople(people, to: environment.name),
                        Administrator.commandLine.audit(
                            .environmentChanged, environment.name, inNamed: environment.name,
                            detail: ["changed": changes.joined(separator: " ")]),
                    ])
        } catch let error as PostgresError where error.sqlState == "23505" {
            // Another environment got the domain, address or issuer in the meantime.
            let conflict = try EnvironmentStore.conflict(of: environment, on: &connection)
            throw CommandFailure(conflict ?? error.description)
        }
    }

    /// Whether options of a back end are given in addition to its kind.
    private var describesBackend: Bool {
        backendUrl != nil || backendUser != nil || backendPasswordVariable != nil || backendPasswordFrom != nil
            || pollInterval != nil || fullPollInterval != nil || callsPerSecond != nil || personCallsPerSecond != nil
            || !backendSettings.isEmpty
    }

    private func set(_ settings: [String], of environment: inout StoredEnvironment) throws {
        guard !settings.isEmpty, let vocabulary = BackendKind.named(environment.backend)?.vocabulary else { return }
        for text in settings {
            guard let equals = text.firstIndex(of: "=") else {
                throw CommandFailure("--backend-setting is name=value, not \(text)")
            }
            let (name, value) = (String(text[..<equals]), String(text[text.index(after: equals)...]))
            guard let setting = vocabulary.settings.first(where: { $0.name == name }) else {
                let names = vocabulary.settings.map(\.name).joined(separator: ", ")
                throw CommandFailure("\(environment.backend) has no setting '\(name)'; available: \(names)")
            }
            if let problem = value.isEmpty ? nil : setting.problem(with: value) { throw CommandFailure(problem) }
            environment.backendSettings[name] = value.isEmpty ? nil : value
        }
    }

    /// Rejects issuers shared by several organisations: administrators of one could claim addresses of another.
    private func checkAddressVerification(_ environment: StoredEnvironment) throws {
        guard environment.addressVerifiedBy == AddressVerification.issuer.rawValue else { return }
        guard EntraTenant(issuer: environment.issuer) != nil else {
            throw CommandFailure(
                "--address-verified-by issuer is for one tenant of Microsoft Entra ID, whose issuer is "
                    + "https://login.microsoftonline.com/TENANT-ID/v2.0, not \(environment.issuer)")
        }
        guard !environment.domains.isEmpty else {
            throw CommandFailure("--address-verified-by issuer is for addresses of the environment's domains: --domain")
        }
    }

    /// The required options that are missing.
    private func missing(_ environment: StoredEnvironment) -> [String] {
        let hasPassword =
            environment.backendPasswordVariable != nil || environment.backendPassword != nil
            || backendPasswordFrom != nil
        let needed = [
            ("--domain or --address", environment.domains.isEmpty && environment.addresses.isEmpty),
            ("--issuer", environment.issuer.isEmpty), ("--audience", environment.audience.isEmpty),
            ("--backend", environment.backend.isEmpty),
        ]
        let needsUser = BackendKind.named(environment.backend)?.needsUser ?? true
        let neededOfBackend = [
            ("--backend-url", environment.backendURL.isEmpty),
            ("--backend-user", environment.backendUser.isEmpty && needsUser),
            ("--backend-password-variable or --backend-password-from", !hasPassword),
        ]
        return (needed + (environment.hasBackend ? neededOfBackend : [])).filter(\.1).map(\.0)
    }

    private func changed(_ stored: StoredEnvironment) -> StoredEnvironment {
        var environment = stored
        if !domains.isEmpty { environment.domains = Self.unique(domains) }
        if !addresses.isEmpty || noAddresses { environment.addresses = Self.unique(addresses) }
        // A different issuer has different keys.
        if let issuer, issuer != stored.issuer { (environment.issuer, environment.jwksURL) = (issuer, "") }
        if let audience { environment.audience = audience }
        if let jwksUrl { environment.jwksURL = jwksUrl }
        if discoveryUrl != nil || noDiscoveryUrl { environment.discoveryURL = discoveryUrl }
        if let clientId { environment.clientID = clientId }
        if !scopes.isEmpty { environment.scopes = scopes }
        if let initialiseOn { environment.initialiseOn = initialiseOn }
        if let hideUnknown { environment.hidesUnknown = hideUnknown == "yes" }
        if let deletedRetention { environment.deletedDays = deletedRetention }
        // Settings of a different kind of back end do not apply.
        if let backend, backend != stored.backend {
            (environment.backend, environment.backendSettings, environment.templates) = (backend, [:], nil)
        }
        if !environment.hasBackend { environment.removeBackend() }
        if let addressVerifiedBy { environment.addressVerifiedBy = addressVerifiedBy.rawValue }
        if let backendUrl { environment.backendURL = backendUrl }
        if let backendUser { environment.backendUser = backendUser }
        if let backendPasswordVariable {
            (environment.backendPasswordVariable, environment.backendPassword) = (backendPasswordVariable, nil)
        }
        if let pollInterval { environment.pollSeconds = pollInterval }
        if let fullPollInterval { environment.fullPollSeconds = fullPollInterval }
        if let callsPerSecond { environment.callsPerSecond = callsPerSecond == 0 ? nil : callsPerSecond }
        if let rate = personCallsPerSecond { environment.personCallsPerSecond = rate == 0 ? nil : rate }
        return environment
    }

    private static func unique(_ names: [String]) -> [String] { Set(names.map(EmailAddress.lowered)).sorted() }

    private func discoverKeys(_ environment: StoredEnvironment) async throws -> String {
        let client = Client()
        defer { client.shutDown() }
        do {
            return try await OpenIDProvider(client: client)
                .discover(environment.issuer, at: environment.discoveryURL).jwksURL
        } catch {
            throw CommandFailure("\(error); give --jwks-url")
        }
    }

    private func seal(_ environment: inout StoredEnvironment, on connection: inout Connection) throws {
        let secrets = try SecretOptions.box()
        guard secrets.canSeal else { throw CommandFailure("\(Setting.secretKeys.variable) is not set") }
        let id = try EnvironmentStore.make(environment.name, on: &connection)
        if let clientSecretFrom {
            let sealed = try secrets.seal(
                try SecretOptions.value(of: clientSecretFrom), at: SecretContext.clientSecret(id))
            environment.clientSecret = Bytea(sealed)
        }
        if let backendPasswordFrom {
            let password = try SecretOptions.value(of: backendPasswordFrom)
            if let objection = BackendKind.named(environment.backend)?.passwordProblem(password) {
                throw CommandFailure("\(backendPasswordFrom) \(objection)")
            }
            let sealed = try secrets.seal(password, at: SecretContext.backendPassword(id))
            (environment.backendPassword, environment.backendPasswordVariable) = (Bytea(sealed), nil)
        }
    }
}

extension AddressVerification: ExpressibleByArgument {}

/// Secrets in environment variables of a command.
enum SecretOptions {
    /// The configured keys.
    static func box() throws -> SecretBox {
        let variables = ProcessInfo.processInfo.environment.filter { $0.key == Setting.secretKeys.variable }
        return try SecretBox(Configuration([.secretKeys], environment: variables).list(.secretKeys))
    }

    static func value(of variable: String) throws -> String {
        guard let value = ProcessInfo.processInfo.environment[variable], !value.isEmpty else {
            throw CommandFailure("the environment variable \(variable) is not set")
        }
        return value
    }
}

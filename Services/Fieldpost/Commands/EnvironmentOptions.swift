import ArgumentParser
import Backends
import FoundationEssentials
import HTTP
import Identity
import Model
import Postgres
import Realms
import Runtime
import Secrets

/// What `environment add` and `environment edit` are told. What is not given stays as it is.
struct EnvironmentOptions: ParsableArguments {
    static let discussion = """
        FILE of --people is a JSON array: [{"email": "ana@example.com", "reference": {…}}]. The reference is how the
        back end calls the person; for SAP: personWorkAgreementExternalId, companyCode, businessPartnerUuid. People who
        are not in the file stay as they are.

        Secrets are never given as arguments. --client-secret-from and --backend-password-from name an environment
        variable of this command, whose value is stored sealed with the first of FIELDPOST_SECRET_KEYS.
        --backend-password-variable names one of the services' variables instead, and nothing is stored.
        """

    @Option(name: .customLong("domain"), help: "An e-mail domain of its people; may be repeated. Replaces all.")
    var domains: [String] = []
    @Option(
        name: .customLong("address"),
        help: "An e-mail address that belongs to it whatever its domain; may be repeated. Replaces all.")
    var addresses: [String] = []
    @Flag(help: "Remove all such addresses.") var noAddresses = false
    @Option(help: "The identity provider, as its tokens name it.") var issuer: String?
    @Option(help: "The audience that tokens for Fieldpost name.") var audience: String?
    @Option(help: "Where the identity provider's keys are; asked of the provider unless given.") var jwksUrl: String?
    @Option(help: "Where the provider's configuration is, when it is not below the issuer.") var discoveryUrl: String?
    @Option(help: "How the provider calls Fieldpost (OAuth client id).") var clientId: String?
    @Option(help: "Variable of this command that holds the client's secret.") var clientSecretFrom: String?
    @Option(name: .customLong("scope"), help: "What is asked for at logins; may be repeated. Replaces all.")
    var scopes: [String] = []
    @Option(help: "When a person's realm is filled: registration or login.") var initialiseOn: String?
    @Option(help: "Whether strangers cannot find out who is known: yes or no.") var hideUnknown: String?
    @Option(help: "The kind of back end: sap, or none when an integration looks after it.") var backend: String?
    @Option(help: "The back end's base URL.") var backendUrl: String?
    @Option(help: "Fieldpost's user at the back end.") var backendUser: String?
    @Option(help: "The environment variable in which the services find that user's password.")
    var backendPasswordVariable: String?
    @Option(help: "Variable of this command that holds that user's password.") var backendPasswordFrom: String?
    @Option(help: "Seconds between two looks for changes in the back end, 5…86400.") var pollInterval: Int32?
    @Option(help: ArgumentHelp("The people, as a JSON file.", valueName: "file")) var people: String?

    func validate() throws {
        if let backend, !["sap", StoredEnvironment.noBackend].contains(backend) {
            throw ValidationError("--backend \(backend): there are sap and none")
        }
        if let variable = backendPasswordVariable, variable.isEmpty || variable.hasPrefix("FIELDPOST_") {
            throw ValidationError(
                "--backend-password-variable must not begin with FIELDPOST_: those are the services' settings")
        }
        guard backendPasswordVariable == nil || backendPasswordFrom == nil else {
            throw ValidationError("give --backend-password-variable or --backend-password-from, not both")
        }
        let urls = [("--jwks-url", jwksUrl), ("--backend-url", backendUrl), ("--discovery-url", discoveryUrl)]
        for case (let option, let url?) in urls {
            guard url.hasPrefix("http://") || url.hasPrefix("https://"), URL(string: url)?.host != nil else {
                throw ValidationError("\(option) \(url) is not an http or https URL")
            }
        }
        if let initialiseOn, !["registration", "login"].contains(initialiseOn) {
            throw ValidationError("--initialise-on is registration or login, not \(initialiseOn)")
        }
        if let hideUnknown, !["yes", "no"].contains(hideUnknown) {
            throw ValidationError("--hide-unknown is yes or no, not \(hideUnknown)")
        }
        if let pollInterval, !(5...86_400).contains(pollInterval) {
            throw ValidationError("--poll-interval is 5…86400, not \(pollInterval)")
        }
        if let address = addresses.first(where: { EmailAddress($0) == nil }) {
            throw ValidationError("--address \(address) is not an e-mail address that can be used")
        }
    }

    /// Stores what is there with what was given over it.
    func save(over stored: StoredEnvironment, on connection: inout Connection) async throws {
        var environment = changed(stored)
        guard environment.hasBackend || !describesBackend else {
            throw CommandFailure("--backend-… and --poll-interval describe a back end: they belong to --backend sap")
        }
        let missing = missing(environment)
        guard missing.isEmpty else { throw CommandFailure("missing: \(missing.joined(separator: ", "))") }
        if let owner = try EnvironmentStore.ownerOfDomain(
            among: environment.domains, beside: environment.name, on: &connection)
        {
            throw CommandFailure("the domain \(owner.domain) belongs to the environment \(owner.environment)")
        }
        let people =
            try people.map {
                try EnvironmentCommand.Person.read(
                    $0, domains: environment.domains, addresses: environment.addresses)
            } ?? []
        if environment.jwksURL.isEmpty { environment.jwksURL = try await discoverKeys(environment) }
        if clientSecretFrom != nil || backendPasswordFrom != nil { try seal(&environment, on: &connection) }
        do {
            try connection.run(
                EnvironmentStore.save(environment)
                    + [
                        try EnvironmentStore.addPeople(people, to: environment.name),
                        Administrator.audit(
                            .environmentChanged, environment.name, in: nil,
                            detail: ["issuer": environment.issuer, "backend": environment.backend]),
                    ])
        } catch let error as PostgresError where error.sqlState == "23505" {
            throw CommandFailure("another environment has the issuer or an address already: \(error.detail ?? "")")
        }
    }

    /// Whether anything of a back end was given beside its kind.
    private var describesBackend: Bool {
        backendUrl != nil || backendUser != nil || backendPasswordVariable != nil || backendPasswordFrom != nil
            || pollInterval != nil
    }

    /// The options that must be given still.
    private func missing(_ environment: StoredEnvironment) -> [String] {
        let hasPassword =
            environment.backendPasswordVariable != nil || environment.backendPassword != nil
            || backendPasswordFrom != nil
        let needed = [
            ("--domain or --address", environment.domains.isEmpty && environment.addresses.isEmpty),
            ("--issuer", environment.issuer.isEmpty), ("--audience", environment.audience.isEmpty),
            ("--backend", environment.backend.isEmpty),
        ]
        let neededOfBackend = [
            ("--backend-url", environment.backendURL.isEmpty), ("--backend-user", environment.backendUser.isEmpty),
            ("--backend-password-variable or --backend-password-from", !hasPassword),
        ]
        return (needed + (environment.hasBackend ? neededOfBackend : [])).filter(\.1).map(\.0)
    }

    private func changed(_ stored: StoredEnvironment) -> StoredEnvironment {
        var environment = stored
        if !domains.isEmpty { environment.domains = domains.map(EmailAddress.lowered) }
        if !addresses.isEmpty || noAddresses { environment.addresses = addresses.map(EmailAddress.lowered) }
        // Another issuer has other keys.
        if let issuer, issuer != stored.issuer { (environment.issuer, environment.jwksURL) = (issuer, "") }
        if let audience { environment.audience = audience }
        if let jwksUrl { environment.jwksURL = jwksUrl }
        if let discoveryUrl { environment.discoveryURL = discoveryUrl }
        if let clientId { environment.clientID = clientId }
        if !scopes.isEmpty { environment.scopes = scopes }
        if let initialiseOn { environment.initialiseOn = initialiseOn }
        if let hideUnknown { environment.hidesUnknown = hideUnknown == "yes" }
        if let backend { environment.backend = backend }
        if !environment.hasBackend { environment.removeBackend() }
        if let backendUrl { environment.backendURL = backendUrl }
        if let backendUser { environment.backendUser = backendUser }
        if let backendPasswordVariable {
            (environment.backendPasswordVariable, environment.backendPassword) = (backendPasswordVariable, nil)
        }
        if let pollInterval { environment.pollSeconds = pollInterval }
        return environment
    }

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
                try SecretOptions.value(of: clientSecretFrom), at: OAuthClient.secretPlace(id))
            environment.clientSecret = Bytea(sealed)
        }
        if let backendPasswordFrom {
            let sealed = try secrets.seal(
                try SecretOptions.value(of: backendPasswordFrom), at: BackendConnection.secretPlace(id))
            (environment.backendPassword, environment.backendPasswordVariable) = (Bytea(sealed), nil)
        }
    }
}

/// Secrets as a command gets them.
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

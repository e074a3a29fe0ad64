import Audit
import Backends
import FoundationEssentials
import HTTPClient
import Identity
import Model
import ObjectStore
import Postgres
import Secrets
import ServiceSettings
import Tenants

extension EnvironmentOptions {
    /// Saves the stored environment with the given options applied. The caller has locked the environment.
    func save(over stored: StoredEnvironment, on connection: inout Connection) async throws {
        var environment = changed(stored)
        guard environment.hasBackend || !describesBackend else {
            throw CommandFailure(
                "--backend-…, --…poll-interval and --…calls-per-second describe a back end and exclude "
                    + "--backend none")
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

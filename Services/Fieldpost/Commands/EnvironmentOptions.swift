import Access
import ArgumentParser
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

/// What `environment add` and `environment edit` are told. What is not given stays as it is.
struct EnvironmentOptions: ParsableArguments {
    static let discussion = """
        FILE of --people is a JSON array: [{"email": "ana@example.com", "reference": {…}}]. The reference is how the
        back end calls the person; for sap: personWorkAgreementExternalId, companyCode, businessPartnerUuid; for
        economic: employeeNumber. People who are not in the file stay as they are.

        The back end economic (e-conomic) is called with two tokens instead of a user: its password is
        appSecretToken:agreementGrantToken, and --backend-user is not needed.

        Settings of --backend-setting:
        \(settings)

        Secrets are never given as arguments. --client-secret-from and --backend-password-from name an environment
        variable of this command, whose value is stored sealed with the first of FIELDPOST_SECRET_KEYS.
        --backend-password-variable names one of the services' variables instead, and nothing is stored.
        """

    /// The adapters' settings, for a person.
    private static var settings: String {
        BackendKind.all.map(\.vocabulary).map { vocabulary in
            vocabulary.settings.map { "\(vocabulary.backend) \($0.name): \($0.help)" }.joined(separator: "\n")
        }.joined(separator: "\n")
    }

    @Option(name: .customLong("domain"), help: "An e-mail domain of its people; may be repeated. Replaces all.")
    var domains: [String] = []
    @Option(
        name: .customLong("address"),
        help: "An e-mail address that belongs to it whatever its domain; may be repeated. Replaces all.")
    var addresses: [String] = []
    @Flag(help: "Remove all such addresses.") var noAddresses = false
    @Option(help: ArgumentHelp("The identity provider, as its tokens name it.", valueName: "url"))
    var issuer: String?
    @Option(help: "The audience that tokens for Fieldpost name.") var audience: String?
    @Option(
        help: ArgumentHelp(
            "Where the identity provider's keys are; asked of the provider unless given.", valueName: "url"))
    var jwksUrl: String?
    @Option(
        help: ArgumentHelp("Where the provider's configuration is, when it is not below the issuer.", valueName: "url"))
    var discoveryUrl: String?
    @Flag(help: "It is below the issuer.") var noDiscoveryUrl = false
    @Option(help: ArgumentHelp("How the provider calls Fieldpost (OAuth client id).", valueName: "id"))
    var clientId: String?
    @Option(help: ArgumentHelp("Variable of this command that holds the client's secret.", valueName: "variable"))
    var clientSecretFrom: String?
    @Option(name: .customLong("scope"), help: "What is asked for at logins; may be repeated. Replaces all.")
    var scopes: [String] = []
    @Option(help: "When a person's realm is filled: registration or login.") var initialiseOn: String?
    @Option(help: ArgumentHelp("Whether strangers cannot find out who is known: yes or no.", valueName: "yes-or-no"))
    var hideUnknown: String?
    @Option(
        help: """
            What says that an address is its person's: the token's claim email_verified (at first), Microsoft Entra \
            ID's xms_edov, or the issuer, for addresses of the environment's domains, when it is one Entra tenant's.
            """)
    var addressVouchedBy: AddressVouching?
    @Option(help: "The kind of back end: sap, economic, or none when an integration looks after it.") var backend:
        String?
    @Option(help: ArgumentHelp("The back end's base URL.", valueName: "url"))
    var backendUrl: String?
    @Option(help: ArgumentHelp("Fieldpost's user at the back end.", valueName: "user"))
    var backendUser: String?
    @Option(
        help: ArgumentHelp(
            "The environment variable in which the services find that user's password.", valueName: "variable"))
    var backendPasswordVariable: String?
    @Option(help: ArgumentHelp("Variable of this command that holds that user's password.", valueName: "variable"))
    var backendPasswordFrom: String?
    @Option(help: ArgumentHelp("Seconds between the poller's looks into the back end, 5…86400.", valueName: "seconds"))
    var pollInterval: Int32?
    @Option(
        help: ArgumentHelp(
            "Seconds between comparisons of everything, where a look finds what has changed, 5…604800.",
            valueName: "seconds"))
    var fullPollInterval: Int32?
    @Option(
        help: ArgumentHelp(
            "Entries submitted to the back end a second, 1…10000; 0: as fast as it answers.", valueName: "number"))
    var callsPerSecond: Int32?
    @Option(
        help: ArgumentHelp(
            "Entries of one person submitted to it a second, 1…10000; 0: as fast as it answers.", valueName: "number"))
    var personCallsPerSecond: Int32?
    @Option(
        name: .customLong("backend-setting"),
        help: ArgumentHelp(
            "A further setting of the adapter; may be repeated. Without a value it is removed.",
            valueName: "name=value"))
    var backendSettings: [String] = []
    @Option(help: ArgumentHelp("The people, as a JSON file.", valueName: "file")) var people: String?

    func validate() throws {
        let kinds = BackendKind.all.map(\.name) + [StoredEnvironment.noBackend]
        if let backend, !kinds.contains(backend) {
            throw ValidationError("--backend \(backend): there are \(kinds.joined(separator: ", "))")
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
            throw ValidationError("--initialise-on is registration or login, not \(initialiseOn)")
        }
        if let hideUnknown, !["yes", "no"].contains(hideUnknown) {
            throw ValidationError("--hide-unknown is yes or no, not \(hideUnknown)")
        }
        if let pollInterval, !(5...86_400).contains(pollInterval) {
            throw ValidationError("--poll-interval is 5…86400, not \(pollInterval)")
        }
        if let fullPollInterval, !(5...604_800).contains(fullPollInterval) {
            throw ValidationError("--full-poll-interval is 5…604800, not \(fullPollInterval)")
        }
        for case (let option, let rate?) in [
            ("--calls-per-second", callsPerSecond), ("--person-calls-per-second", personCallsPerSecond),
        ] where !(0...10_000).contains(rate) {
            throw ValidationError("\(option) is 0…10000, not \(rate)")
        }
    }

    private func validateAddresses() throws {
        for case (let option, let url?) in [
            ("--issuer", issuer), ("--jwks-url", jwksUrl), ("--discovery-url", discoveryUrl),
        ] where !OpenIDProvider.isUsable(url) {
            throw ValidationError("\(option) \(url) is not an https URL (http is for this machine only)")
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
                "--domain \(domain) is not a domain of e-mail addresses, such as acme.example (others as xn--…)"
            )
        }
        if let address = addresses.first(where: { EmailAddress($0) == nil }) {
            throw ValidationError("--address \(address) is not an e-mail address that can be used")
        }
    }
}

extension AddressVouching: ExpressibleByArgument {}

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

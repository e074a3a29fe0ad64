import ArgumentParser
import BackendConnections
import CommandLineSupport
import FoundationEssentials
import Tenants

extension EnvironmentCommand {
    /// `fieldpost environment show`: the configuration of an environment, without secrets.
    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Show the configuration of an environment.")
        @Argument(help: "The environment.") var name: String
        @OptionGroup var database: DatabaseOptions
        @OptionGroup var output: OutputOptions

        func run() throws {
            var connection = try database.connect()
            let (stored, id) = try EnvironmentStore.existing(name, on: &connection)
            let defects = try DefectTracker.load(id, on: &connection)
            let shown = Shown(stored, defects.map(DefectsCommand.Row.init))
            if output.json { return try printJSON(shown) }
            print(Table(["SETTING", "VALUE"], shown.lines) { [$0.0, $0.1] }.text, terminator: "")
        }
    }

    private struct Shown: Encodable {
        let name, issuer, audience, jwksURL: String
        let domains, addresses, scopes: [String]
        let discoveryURL, clientID: String?
        let hasClientSecret: Bool
        let initialiseOn: String
        let hidesUnknown: Bool
        let addressVerifiedBy, backend: String
        /// `nil` without a back end.
        let backendURL, backendUser: String?
        /// The services' variable, or `nil` when the password is stored.
        let backendPasswordVariable: String?
        let hasBackendPassword: Bool
        /// `nil` without a back end.
        let pollIntervalSeconds, fullPollIntervalSeconds: Int32?
        /// `nil` without a rate limit.
        let callsPerSecond, personCallsPerSecond: Int32?
        let backendSettings: [String: String]
        /// Whether it declares its own templates.
        let hasTemplates: Bool
        /// Its defect tracker, if any.
        let defects: DefectsCommand.Row?

        init(_ stored: StoredEnvironment, _ defects: DefectsCommand.Row?) {
            name = stored.name
            domains = stored.domains
            addresses = stored.addresses
            issuer = stored.issuer
            audience = stored.audience
            jwksURL = stored.jwksURL
            discoveryURL = stored.discoveryURL
            clientID = stored.clientID
            hasClientSecret = stored.clientSecret != nil
            scopes = stored.scopes
            initialiseOn = stored.initialiseOn
            hidesUnknown = stored.hidesUnknown
            addressVerifiedBy = stored.addressVerifiedBy
            backend = stored.backend
            backendURL = stored.hasBackend ? stored.backendURL : nil
            backendUser = stored.hasBackend ? stored.backendUser : nil
            backendPasswordVariable = stored.backendPasswordVariable
            hasBackendPassword = stored.backendPassword != nil
            pollIntervalSeconds = stored.hasBackend ? stored.pollSeconds : nil
            fullPollIntervalSeconds = stored.hasBackend ? stored.fullPollSeconds : nil
            callsPerSecond = stored.callsPerSecond
            personCallsPerSecond = stored.personCallsPerSecond
            backendSettings = stored.backendSettings
            hasTemplates = stored.templates != nil
            self.defects = defects
        }

        var lines: [(String, String)] {
            [
                ("name", name), ("domains", domains.joined(separator: ", ")),
                ("addresses", addresses.isEmpty ? "-" : addresses.joined(separator: ", ")), ("issuer", issuer),
                ("audience", audience), ("keys", jwksURL), ("configuration", discoveryURL ?? "below the issuer"),
                ("client", clientID ?? "-"), ("client secret", hasClientSecret ? "stored, sealed" : "not set"),
                ("scopes", scopes.joined(separator: " ")), ("realms are initialised on", initialiseOn),
                ("registered addresses are disclosed", hidesUnknown ? "no" : "yes"),
                ("addresses are verified by", addressVerifiedBy),
            ] + backendLines + defectLines
        }

        private var defectLines: [(String, String)] {
            guard let defects else { return [("defects", "none: fieldpost environment defects add")] }
            return [
                ("defects", "\(defects.server) \(defects.repository)/\(defects.userDatabase) \(defects.recordType)"),
                ("defects' account", defects.account), ("defects' poll interval", "\(defects.pollInterval) s"),
            ]
        }

        private var backendLines: [(String, String)] {
            guard let backendURL, let backendUser, let pollIntervalSeconds, let fullPollIntervalSeconds else {
                return [("back end", "none: an integration manages it")]
            }
            let lines: [(String, String)] = [
                ("back end", "\(backend) \(backendURL)"), ("back end's user", backendUser),
                (
                    "its password",
                    backendPasswordVariable.map { "in the services' variable \($0)" }
                        ?? (hasBackendPassword ? "stored, sealed" : "not set")
                ), ("poll interval", "\(pollIntervalSeconds) s"),
                ("full poll interval", "\(fullPollIntervalSeconds) s"),
                ("calls per second", callsPerSecond.map { "\($0)" } ?? "unlimited"),
                ("calls per second and person", personCallsPerSecond.map { "\($0)" } ?? "unlimited"),
                ("templates", hasTemplates ? "its own: fieldpost environment templates" : "the adapter's"),
            ]
            return lines + backendSettings.keys.sorted().map { ("setting \($0)", backendSettings[$0] ?? "") }
        }
    }
}

import FoundationEssentials
package import Model
package import Postgres

/// An environment as it is stored, with its secrets sealed.
package struct StoredEnvironment: Equatable {
    package let name: String
    /// `nil` before it is stored.
    package var id: EnvironmentID?
    package var domains: [String] = []
    /// Addresses of its own, whatever their domain.
    package var addresses: [String] = []
    package var issuer = ""
    package var audience = ""
    package var jwksURL = ""
    package var discoveryURL: String?
    package var clientID: String?
    package var clientSecret: Bytea?
    package var scopes = ["openid", "email", "profile"]
    package var initialiseOn = "registration"
    package var hidesUnknown = true
    /// An ``AddressVouching``.
    package var addressVouchedBy = AddressVouching.emailVerified.rawValue
    /// The kind of back end, or ``noBackend``.
    package var backend = ""
    package var backendURL = ""
    package var backendUser = ""
    package var backendPasswordVariable: String?
    package var backendPassword: Bytea?
    package var pollSeconds: Int32 = 300
    package var fullPollSeconds: Int32 = 3_600
    /// How fast the back end is called; `nil`: as fast as it answers.
    package var callsPerSecond: Int32?
    package var personCallsPerSecond: Int32?
    /// The adapter's further settings, by name.
    package var backendSettings: [String: String] = [:]
    /// What its people can register, as it is stored; `nil`: what the adapter has by itself.
    package var templates: String?

    /// An integration looks after the environment.
    package static let noBackend = "none"

    package var hasBackend: Bool { backend != Self.noBackend }

    /// One that is not there yet.
    package init(name: String) { self.name = name }

    package init(name: String, _ row: Row) throws {
        self.init(name: name)
        id = EnvironmentID(rawValue: try row.value(0))
        domains = try row.value(1)
        addresses = try row.value(17)
        // An environment may be there without its provider and back end, when adding it was interrupted.
        if let issuer = try row.optional(2, as: String.self) {
            self.issuer = issuer
            audience = try row.value(3)
            jwksURL = try row.value(4)
            discoveryURL = try row.optional(5)
            clientID = try row.optional(6)
            clientSecret = try row.optional(7)
            scopes = try row.value(8)
            initialiseOn = try row.value(9)
            hidesUnknown = try row.value(10)
            addressVouchedBy = try row.value(21)
            backend = Self.noBackend
        }
        if let kind = try row.optional(11, as: String.self) {
            backend = kind
            backendURL = try row.value(12)
            backendUser = try row.value(13)
            backendPasswordVariable = try row.optional(14)
            backendPassword = try row.optional(15)
            pollSeconds = try row.value(16)
            fullPollSeconds = try row.value(18)
            callsPerSecond = try row.optional(19)
            personCallsPerSecond = try row.optional(20)
            let settings = Data(try row.value(22, as: String.self).utf8)
            backendSettings = try JSONDecoder().decode([String: String].self, from: settings)
            templates = try row.optional(23)
        }
    }

    /// The names of the settings in which this one differs, for the audit log: never their values.
    package func changes(from old: StoredEnvironment) -> [String] {
        let identity: [(String, Bool)] = [
            ("domains", domains != old.domains), ("addresses", addresses != old.addresses),
            ("issuer", issuer != old.issuer), ("audience", audience != old.audience),
            ("jwks-url", jwksURL != old.jwksURL), ("discovery-url", discoveryURL != old.discoveryURL),
            ("client-id", clientID != old.clientID), ("client-secret", clientSecret != old.clientSecret),
            ("scopes", scopes != old.scopes), ("initialise-on", initialiseOn != old.initialiseOn),
            ("hide-unknown", hidesUnknown != old.hidesUnknown),
            ("address-vouched-by", addressVouchedBy != old.addressVouchedBy),
        ]
        let hasNewPassword =
            backendPassword != old.backendPassword || backendPasswordVariable != old.backendPasswordVariable
        let backEnd: [(String, Bool)] = [
            ("backend", backend != old.backend), ("backend-url", backendURL != old.backendURL),
            ("backend-user", backendUser != old.backendUser), ("backend-password", hasNewPassword),
            ("poll-interval", pollSeconds != old.pollSeconds),
            ("full-poll-interval", fullPollSeconds != old.fullPollSeconds),
            ("calls-per-second", callsPerSecond != old.callsPerSecond),
            ("person-calls-per-second", personCallsPerSecond != old.personCallsPerSecond),
            ("backend-setting", backendSettings != old.backendSettings), ("templates", templates != old.templates),
        ]
        return (identity + backEnd).filter(\.1).map(\.0)
    }

    /// Leaves it to an integration.
    package mutating func removeBackend() {
        (backend, backendURL, backendUser) = (Self.noBackend, "", "")
        (backendPasswordVariable, backendPassword, pollSeconds, fullPollSeconds) = (nil, nil, 300, 3_600)
        (callsPerSecond, personCallsPerSecond, backendSettings, templates) = (nil, nil, [:], nil)
    }
}

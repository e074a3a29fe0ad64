import FoundationEssentials
package import Model
package import Postgres

/// An environment's stored settings, with sealed secrets.
package struct StoredEnvironment: Equatable {
    package let name: String
    /// `nil` before it is stored.
    package var id: EnvironmentID?
    package var domains: [String] = []
    /// Addresses that belong to the environment regardless of their domain.
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
    /// An ``AddressVerification``.
    package var addressVerifiedBy = AddressVerification.emailVerified.rawValue
    /// The days for which deleted objects and ended shares are retained.
    package var deletedDays = DeletionRetention.daysDefault
    /// The kind of back end, or ``noBackend``.
    package var backend = ""
    package var backendURL = ""
    package var backendUser = ""
    package var backendPasswordVariable: String?
    package var backendPassword: Bytea?
    package var pollSeconds: Int32 = 300
    package var fullPollSeconds: Int32 = 3_600
    /// The rate limit of calls to the back end; `nil`: unlimited.
    package var callsPerSecond: Int32?
    package var personCallsPerSecond: Int32?
    /// The adapter's additional settings, by name.
    package var backendSettings: [String: String] = [:]
    /// The stored templates of what people can register; `nil`: the adapter's defaults.
    package var templates: String?

    /// The `backend` of an environment whose data an integration maintains.
    package static let noBackend = "none"

    package var hasBackend: Bool { backend != Self.noBackend }

    /// Creates settings for a new environment.
    package init(name: String) { self.name = name }

    package init(name: String, _ row: Row) throws {
        self.init(name: name)
        var columns = row.columns
        id = try columns.next(EnvironmentID.self)
        domains = try columns.next()
        addresses = try columns.next()
        // An environment may lack provider and back end if its creation was interrupted.
        let hasProvider = try columns.next(Bool.self)
        issuer = try columns.next()
        audience = try columns.next()
        jwksURL = try columns.next()
        discoveryURL = try columns.next()
        clientID = try columns.next()
        clientSecret = try columns.next()
        scopes = try columns.next([String]?.self) ?? scopes
        initialiseOn = try columns.next(String?.self) ?? initialiseOn
        hidesUnknown = try columns.next(Bool?.self) ?? hidesUnknown
        addressVerifiedBy = try columns.next(String?.self) ?? addressVerifiedBy
        deletedDays = try columns.next(Int32?.self) ?? deletedDays
        backend = try columns.next(String?.self) ?? (hasProvider ? Self.noBackend : "")
        backendURL = try columns.next()
        backendUser = try columns.next()
        backendPasswordVariable = try columns.next()
        backendPassword = try columns.next()
        pollSeconds = try columns.next(Int32?.self) ?? pollSeconds
        fullPollSeconds = try columns.next(Int32?.self) ?? fullPollSeconds
        callsPerSecond = try columns.next()
        personCallsPerSecond = try columns.next()
        backendSettings =
            try columns.next(String?.self).map {
                try JSONDecoder().decode([String: String].self, from: Data($0.utf8))
            } ?? [:]
        templates = try columns.next()
        try columns.end()
    }

    /// Returns the names of the settings that differ, for the audit log; never their values.
    package func changes(from old: StoredEnvironment) -> [String] {
        let identity: [(String, Bool)] = [
            ("domains", domains != old.domains), ("addresses", addresses != old.addresses),
            ("issuer", issuer != old.issuer), ("audience", audience != old.audience),
            ("jwks-url", jwksURL != old.jwksURL), ("discovery-url", discoveryURL != old.discoveryURL),
            ("client-id", clientID != old.clientID), ("client-secret", clientSecret != old.clientSecret),
            ("scopes", scopes != old.scopes), ("initialise-on", initialiseOn != old.initialiseOn),
            ("hide-unknown", hidesUnknown != old.hidesUnknown),
            ("address-verified-by", addressVerifiedBy != old.addressVerifiedBy),
            ("deleted-retention", deletedDays != old.deletedDays),
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

    /// Removes the back end, so that an integration maintains the data.
    package mutating func removeBackend() {
        (backend, backendURL, backendUser) = (Self.noBackend, "", "")
        (backendPasswordVariable, backendPassword, pollSeconds, fullPollSeconds) = (nil, nil, 300, 3_600)
        (callsPerSecond, personCallsPerSecond, backendSettings, templates) = (nil, nil, [:], nil)
    }
}

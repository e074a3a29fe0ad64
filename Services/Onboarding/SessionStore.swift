import Access
import Audit
import Essentials
import FoundationEssentials
import Identity
import Model
import ObjectStore
import Postgres
import Secrets
import Tenants

/// The SQL of sessions and login attempts.
struct SessionStore: Sendable {
    let secrets: SecretBox
    let limits: OnboardingLimits

    /// A session in the state of a login attempt.
    struct PendingLogin: Sendable {
        let session: Bytea
        /// The attempt's key.
        let state: Bytea
        let email: EmailAddress
        let organisation: Organisation
        let nonce: String
        let sealedVerifier: Bytea
        let deviceAddress: String
        let deviceName: String

        /// Returns an audit record of the login's outcome.
        ///
        /// - Parameter browser: The network address of the person's browser; ``deviceAddress`` is the device's.
        func record(
            _ action: AuditRecord.Action, actor: String, browser: String, problem: LoginProblem? = nil
        ) -> AuditRecord {
            let device =
                "{\"device\":\"\(deviceAddress)\"" + (problem.map { ",\"problem\":\"\($0.code)\"" } ?? "") + "}"
            return AuditRecord(
                actor: actor, action: action, subject: deviceName, detail: JSONBytes(device), address: browser)
        }
    }

    private static func verifierContext(_ state: Bytea) -> String { "login/\(Base64URL.text(state.bytes))/verifier" }

    /// Returns statements that create a session with its first attempt. Idempotent.
    func begin(
        _ id: Capability, _ email: EmailAddress, _ organisation: Organisation, _ attempt: AuthorizationRequest,
        from client: String, device: String
    ) throws -> [Statement] {
        let environment = organisation.environment
        let realms = Registration.objectID(of: email.description, foundedAs: organisation.foundedAs)
        let seconds = Double(limits.sessionMax.components.seconds)
        return [
            """
            INSERT INTO onboarding.session
                (id, environment_id, email, realms_id, expires_at, device_address, device_name, wants_realm)
            VALUES (\(id.key), \(environment.rawValue), \(email.description), \(realms),
                now() + make_interval(secs => \(seconds)), \(client), \(device),
                \(!organisation.initialisesOnLogin))
            ON CONFLICT (id) DO NOTHING
            """,
            try add(attempt, to: id.key),
        ]
    }

    /// Returns a statement that adds an attempt to a session, unless it has `loginCountMax`.
    func add(_ attempt: AuthorizationRequest, to session: Bytea) throws -> Statement {
        let state = Capability.key(of: attempt.state)
        let verifier = Bytea(try secrets.seal(attempt.verifier, at: Self.verifierContext(state)))
        return """
            INSERT INTO onboarding.login (state, session_id, nonce, verifier)
            SELECT \(state), \(session), \(attempt.nonce), \(verifier)
            WHERE (SELECT count(*) FROM onboarding.login WHERE session_id = \(session))
                < \(Int64(limits.loginCountMax))
            ON CONFLICT (state) DO NOTHING
            """
    }

    /// Marks an attempt as used and returns it; `nil` if the `state` does not exist or was used before.
    func consume(_ state: Capability, on connection: inout Connection) throws -> PendingLogin? {
        let rows = try connection.run(
            """
            UPDATE onboarding.login l SET used_at = now() FROM onboarding.session s, access.provider p
            WHERE l.state = \(state.key) AND l.used_at IS NULL AND \(sql: Self.isWaiting)
            RETURNING \(sql: LoginSettings.columns), \(sql: Self.pendingColumns)
            """)
        guard var columns = rows.first?.columns else { return nil }
        return try pendingLogin(&columns, on: &connection)
    }

    /// Decrypts the PKCE verifier of an attempt, for the exchange of its code.
    func verifier(of pending: PendingLogin) throws -> String {
        try secrets.openText(pending.sealedVerifier.bytes, at: Self.verifierContext(pending.state))
    }

    /// Ends an attempt that was used at least 30 s ago without an outcome, because its instance stopped or stalled, and
    /// returns it.
    func consumeInterrupted(_ state: Capability, on connection: inout Connection) throws -> PendingLogin? {
        let rows = try connection.run(
            """
            UPDATE onboarding.login l SET ended_at = now() FROM onboarding.session s, access.provider p
            WHERE l.state = \(state.key) AND l.used_at < now() - interval '30 seconds' AND l.ended_at IS NULL
                AND l.confirm IS NULL AND \(sql: Self.isWaiting)
            RETURNING \(sql: LoginSettings.columns), \(sql: Self.pendingColumns)
            """)
        guard var columns = rows.first?.columns else { return nil }
        return try pendingLogin(&columns, on: &connection)
    }

    private static let isWaiting: StaticString = """
        s.id = l.session_id AND s.expires_at > now() AND s.person_id IS NULL AND p.environment_id = s.environment_id
        """
    private static let pendingColumns: StaticString = """
        s.id, s.email, l.state, l.nonce, l.verifier, s.device_address, s.device_name
        """

    /// Reads the columns of `LoginSettings.columns` and ``pendingColumns``, which are the last ones of the row.
    ///
    /// - Returns: `nil` if the environment has moved: the device must start over.
    private func pendingLogin(_ columns: inout Columns, on connection: inout Connection) throws -> PendingLogin? {
        let settings = try LoginSettings(&columns)
        let (session, address): (Bytea, String) = (try columns.next(), try columns.next())
        let (state, nonce, verifier): (Bytea, String, Bytea) = (
            try columns.next(), try columns.next(), try columns.next()
        )
        let (deviceAddress, deviceName): (String, String) = (try columns.next(), try columns.next())
        try columns.end()
        guard try AccessDirectory.left(on: &connection)[settings.environment] == nil,
            let organisation = try Organisation(settings, secrets: secrets), let email = EmailAddress(address)
        else { return nil }
        return PendingLogin(
            session: session, state: state, email: email, organisation: organisation, nonce: nonce,
            sealedVerifier: verifier, deviceAddress: deviceAddress, deviceName: deviceName)
    }

    /// Returns a statement that marks an attempt as ended: it no longer counts as interrupted.
    static func end(_ pending: PendingLogin) -> Statement {
        "UPDATE onboarding.login SET ended_at = now() WHERE state = \(pending.state)"
    }

    /// A session's claim of a new socket.
    struct Claim: Sendable {
        let session: Bytea
        /// Sockets with lower numbers are superseded.
        let number: Int32
        let expires: ContinuousClock.Instant
    }

    /// Assigns the next number to a session's new socket; `nil` if the session does not exist.
    static func claim(_ id: Capability, on connection: inout Connection) throws -> Claim? {
        let rows = try connection.run(
            """
            UPDATE onboarding.session SET socket = socket + 1 WHERE id = \(id.key) AND expires_at > now()
            RETURNING socket, extract(epoch FROM expires_at - now())::float8
            """)
        guard let (number, seconds) = try rows.first?.decode(Int32.self, Double.self) else { return nil }
        return Claim(session: id.key, number: number, expires: .now + Duration.seconds(seconds))
    }

    // MARK: Login completion

    /// The credential and refresh token of a new device.
    struct NewDevice: Sendable {
        let refreshToken: String
        let credential: DeviceCredential
    }

    /// Stores a completed login: the device's token and the session's person. Idempotent.
    ///
    /// A person whose address changed since the first login keeps the realm of the first address.
    ///
    /// - Returns: Whether the session still exists.
    func complete(
        _ pending: PendingLogin, person: BoundPerson, token: EventStore.NewEvent, identity: Identity,
        device: NewDevice?, from browser: String, events: EventStore, on connection: inout Connection
    ) throws -> Bool {
        let environment = pending.organisation.environment
        var statements: [Statement] = []
        if person.email != pending.email.description {
            // The lock prevents further events about the realm of the other address.
            statements += [
                "SELECT FROM onboarding.session WHERE id = \(pending.session) FOR UPDATE",
                """
                DELETE FROM onboarding.event WHERE session_id = \(pending.session)
                    AND name IN ('realm initialized', 'data ready')
                    AND EXISTS (SELECT FROM onboarding.session WHERE id = \(pending.session) AND person_id IS NULL)
                """,
            ]
        }
        if let device {
            let context = SecretContext.refreshToken(environment, person: person.id)
            let sealed = Bytea(try secrets.seal(device.refreshToken, at: context))
            let credential = device.credential
            statements.append(
                """
                INSERT INTO onboarding.refresh_token
                    (environment_id, person_id, token, device, newest, device_name, issuer, subject)
                SELECT \(environment.rawValue), \(person.id), \(sealed), \(credential.device.key),
                    \(credential.secret.key), \(pending.deviceName), \(identity.issuer), \(identity.subject)
                FROM onboarding.session
                WHERE id = \(pending.session) AND person_id IS NULL AND expires_at > now()
                """)
        }
        statements += [
            """
            SELECT realm.miss(ARRAY[0]) WHERE NOT EXISTS (
                SELECT FROM onboarding.session
                WHERE id = \(pending.session) AND person_id IS NULL AND expires_at > now())
            """,
            AuditRecord.insert(
                [(pending.record(.loggedIn, actor: person.email, browser: browser), decision: 0)], in: environment),
            Self.end(pending),
            """
            UPDATE onboarding.session SET person_id = \(person.id), email = \(person.email),
                realms_id = \(Registration.objectID(of: person.email, foundedAs: pending.organisation.foundedAs)),
                progress = CASE email WHEN \(person.email) THEN progress ELSE 0 END,
                wants_realm = wants_realm OR email <> \(person.email) OR \(pending.organisation.initialisesOnLogin)
                    OR NOT EXISTS (SELECT FROM backend.connection WHERE environment_id = \(environment.rawValue))
            WHERE id = \(pending.session) AND person_id IS NULL AND expires_at > now()
            """,
        ]
        let update = statements.count - 1
        if try connection.run(statements + events.append([token]))[update].affectedCount == 1 { return true }
        let rows = try connection.run(
            "SELECT FROM onboarding.session WHERE id = \(pending.session) AND person_id = \(person.id)")
        return rows.count == 1
    }

    private static func tokensContext(_ confirm: Bytea) -> String { "login/\(Base64URL.text(confirm.bytes))/tokens" }

    /// Returns a statement that stores the provider's tokens until the person confirms the device.
    func storeTokens(_ tokens: ProviderTokens, for state: Capability, confirm: Capability) throws -> Statement {
        let json = Array(try JSONEncoder().encode(tokens))
        let sealed = Bytea(try secrets.seal(json, at: Self.tokensContext(confirm.key)))
        return """
            UPDATE onboarding.login SET confirm = \(confirm.key), tokens = \(sealed) WHERE state = \(state.key)
            """
    }

    /// Removes and returns the tokens that await confirmation.
    func consumeConfirmed(
        _ confirm: Capability, on connection: inout Connection
    ) throws -> (pending: PendingLogin, tokens: ProviderTokens)? {
        let rows = try connection.run(
            """
            UPDATE onboarding.login l SET confirm = NULL, tokens = NULL
            FROM onboarding.session s, access.provider p, onboarding.login o
            WHERE l.confirm = \(confirm.key) AND o.state = l.state AND \(sql: Self.isWaiting)
            RETURNING o.tokens, \(sql: LoginSettings.columns), \(sql: Self.pendingColumns)
            """)
        guard var columns = rows.first?.columns else { return nil }
        let sealed: Bytea = try columns.next()
        guard let pending = try pendingLogin(&columns, on: &connection) else { return nil }
        let json = try secrets.open(sealed.bytes, at: Self.tokensContext(confirm.key))
        return (pending, try JSONDecoder().decode(ProviderTokens.self, from: Data(json)))
    }

    /// Stores the names of a token's claims; unchanged names at most once per minute.
    static func store(claims names: [String], in environment: EnvironmentID, on connection: inout Connection) throws {
        try connection.run(
            """
            INSERT INTO onboarding.token_claims AS c (environment_id, names) VALUES (\(environment.rawValue), \(names))
            ON CONFLICT (environment_id) DO UPDATE SET names = excluded.names, seen_at = now()
            WHERE c.names <> excluded.names OR c.seen_at < now() - interval '1 minute'
            """)
    }

    /// Whether the session exists and has not expired.
    static func exists(_ id: Capability, on connection: inout Connection) throws -> Bool {
        let rows = try connection.run("SELECT FROM onboarding.session WHERE id = \(id.key) AND expires_at > now()")
        return rows.count == 1
    }

    /// Returns sessions whose person's realm is not registered yet: the oldest of each environment.
    ///
    /// If an integration maintains the environment (no back end), every person who has logged in counts as known.
    static func awaitingRegistration(countMax: Int, on connection: inout Connection) throws -> [PendingRegistration] {
        try connection.run(
            """
            SELECT s.id, s.environment_id, s.email,
                b.email IS NOT NULL OR c.environment_id IS NULL AND s.person_id IS NOT NULL
            FROM access.provider p
            CROSS JOIN LATERAL (
                SELECT * FROM onboarding.session
                WHERE environment_id = p.environment_id AND wants_realm AND expires_at > now()
                ORDER BY created_at LIMIT \(Int64(countMax))
            ) s
            LEFT JOIN backend.person b ON b.environment_id = s.environment_id AND b.email = s.email
            LEFT JOIN backend.connection c ON c.environment_id = s.environment_id
            """
        ).decode(Bytea.self, EnvironmentID.self, String.self, Bool.self).map {
            PendingRegistration(session: $0, environment: $1, email: $2, isKnown: $3)
        }
    }

    /// A session whose person's realm must be registered.
    struct PendingRegistration: Sendable {
        let session: Bytea
        let environment: EnvironmentID
        let email: String
        /// Whether the back end lists the person; only then is the realm registered.
        let isKnown: Bool
    }

    /// Deletes expired sessions with their data, and expired rate limit counters.
    ///
    /// - Returns: Whether there may be more.
    static func deleteExpired(countMax: Int, on connection: inout Connection) throws -> Bool {
        let results = try connection.run([
            """
            DELETE FROM onboarding.session WHERE id IN (
                SELECT id FROM onboarding.session WHERE expires_at < now() - interval '10 seconds'
                LIMIT \(Int64(countMax)) FOR UPDATE SKIP LOCKED)
            """,
            """
            DELETE FROM onboarding.rate WHERE key IN (
                SELECT key FROM onboarding.rate WHERE until_at < now() LIMIT \(Int64(countMax)) FOR UPDATE SKIP LOCKED)
            """,
        ])
        return results.contains { $0.affectedCount == countMax }
    }
}

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

/// The SQL of sessions and of attempts to log in.
struct SessionStore: Sendable {
    let secrets: SecretBox
    let limits: OnboardingLimits

    /// A session that was found by one of its attempts.
    struct Found: Sendable {
        let session: Bytea
        /// The attempt.
        let state: Bytea
        let email: EmailAddress
        let organisation: Organisation
        let nonce: String
        let verifier: String
        let deviceAddress: String
        let deviceName: String

        /// What became of it, for the audit log.
        ///
        /// - Parameter browser: The network address at which the person logged in; ``deviceAddress`` is the device's.
        func record(
            _ action: AuditRecord.Action, actor: String, browser: String, problem: LoginProblem? = nil
        ) -> AuditRecord {
            let device =
                "{\"device\":\"\(deviceAddress)\"" + (problem.map { ",\"problem\":\"\($0.code)\"" } ?? "") + "}"
            return AuditRecord(
                actor: actor, action: action, subject: deviceName, detail: JSONBytes(device), address: browser)
        }
    }

    private static func verifierPlace(_ state: Bytea) -> String { "login/\(Base64URL.text(state.bytes))/verifier" }

    /// The statements that begin a session with its first attempt. Done again, they do nothing.
    func begin(
        _ id: Capability, _ email: EmailAddress, _ organisation: Organisation, _ attempt: LoginAttempt,
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

    /// One more attempt for a session, unless it has had as many as it may.
    func add(_ attempt: LoginAttempt, to session: Bytea) throws -> Statement {
        let state = attempt.state.key
        let verifier = Bytea(try secrets.seal(attempt.verifier.text, at: Self.verifierPlace(state)))
        return """
            INSERT INTO onboarding.login (state, session_id, nonce, verifier)
            SELECT \(state), \(session), \(attempt.nonce.text), \(verifier)
            WHERE (SELECT count(*) FROM onboarding.login WHERE session_id = \(session))
                < \(Int64(limits.loginCountMax))
            ON CONFLICT (state) DO NOTHING
            """
    }

    /// Uses up an attempt: whoever comes second with the same `state` finds nothing.
    func take(_ state: Capability, on connection: inout Connection) throws -> Found? {
        let rows = try connection.run(
            """
            UPDATE onboarding.login l SET used_at = now() FROM onboarding.session s, access.provider p
            WHERE l.state = \(state.key) AND l.used_at IS NULL AND \(sql: Self.isWaiting)
            RETURNING \(sql: LoginSettings.columns), \(sql: Self.foundColumns)
            """)
        return try found(state, rows, on: &connection)
    }

    /// Takes an attempt that was used and came to no end: the instance that had it is gone, or does not come to one.
    func takeInterrupted(_ state: Capability, on connection: inout Connection) throws -> Found? {
        let rows = try connection.run(
            """
            UPDATE onboarding.login l SET ended_at = now() FROM onboarding.session s, access.provider p
            WHERE l.state = \(state.key) AND l.used_at < now() - interval '30 seconds' AND l.ended_at IS NULL
                AND l.confirm IS NULL AND \(sql: Self.isWaiting)
            RETURNING \(sql: LoginSettings.columns), \(sql: Self.foundColumns)
            """)
        return try found(state, rows, on: &connection)
    }

    private static let isWaiting: StaticString = """
        s.id = l.session_id AND s.expires_at > now() AND s.person_id IS NULL AND p.environment_id = s.environment_id
        """
    private static let foundColumns: StaticString = """
        s.id, s.email, l.nonce, l.verifier, s.device_address, s.device_name
        """

    private func found(
        _ state: Capability, _ rows: Rows, on connection: inout Connection
    ) throws -> Found? {
        guard var columns = rows.first?.columns else { return nil }
        let settings = try LoginSettings(&columns)
        let (session, address): (Bytea, String) = (try columns.next(), try columns.next())
        let (nonce, sealed): (String, Bytea) = (try columns.next(), try columns.next())
        let (deviceAddress, deviceName): (String, String) = (try columns.next(), try columns.next())
        try columns.end()
        guard let (organisation, email) = try who(settings, address, on: &connection) else { return nil }
        return Found(
            session: session, state: state.key, email: email, organisation: organisation, nonce: nonce,
            verifier: try secrets.openText(sealed.bytes, at: Self.verifierPlace(state.key)),
            deviceAddress: deviceAddress, deviceName: deviceName)
    }

    /// Whose login it is, and who it was for; `nil` where the environment has moved: the device begins again.
    private func who(
        _ settings: LoginSettings, _ address: String, on connection: inout Connection
    ) throws -> (Organisation, EmailAddress)? {
        guard try AccessDirectory.left(on: &connection)[settings.environment] == nil,
            let organisation = try Organisation(settings, secrets: secrets), let email = EmailAddress(address)
        else { return nil }
        return (organisation, email)
    }

    /// An attempt's outcome is told: it cannot be taken for one that was interrupted.
    static func end(_ found: Found) -> Statement {
        "UPDATE onboarding.login SET ended_at = now() WHERE state = \(found.state)"
    }

    /// A socket that was opened for a session.
    struct Claim: Sendable {
        let session: Bytea
        /// Sockets with lower numbers are not the session's any more.
        let number: Int32
        let expires: ContinuousClock.Instant
    }

    /// Numbers a new socket of a session; `nil` when there is no such session.
    static func claim(_ id: Capability, on connection: inout Connection) throws -> Claim? {
        let rows = try connection.run(
            """
            UPDATE onboarding.session SET socket = socket + 1 WHERE id = \(id.key) AND expires_at > now()
            RETURNING socket, extract(epoch FROM expires_at - now())::float8
            """)
        guard let (number, seconds) = try rows.first?.decode(Int32.self, Double.self) else { return nil }
        return Claim(session: id.key, number: number, expires: .now + Duration.seconds(seconds))
    }

    // MARK: The end of a login

    /// What a device may renew its token with, and the provider's part of it.
    struct NewDevice: Sendable {
        let refreshToken: String
        let credential: DeviceCredential
    }

    /// Stores the end of a login: the token for the device, and whose the session is. Done again, it does nothing.
    ///
    /// Whose address has changed since the first login has the realm of the first.
    ///
    /// - Returns: Whether the session is there still.
    func complete(
        _ found: Found, person: BoundPerson, token: EventStore.New, identity: Identity, device: NewDevice?,
        from browser: String, events: EventStore, on connection: inout Connection
    ) throws -> Bool {
        let environment = found.organisation.environment
        var statements: [Statement] = []
        if person.email != found.email.description {
            // While the session is locked nobody tells more of the realm that is not the person's.
            statements += [
                "SELECT FROM onboarding.session WHERE id = \(found.session) FOR UPDATE",
                """
                DELETE FROM onboarding.event WHERE session_id = \(found.session)
                    AND name IN ('realm initialized', 'data ready')
                    AND EXISTS (SELECT FROM onboarding.session WHERE id = \(found.session) AND person_id IS NULL)
                """,
            ]
        }
        if let device {
            let place = SecretContext.refreshToken(environment, person: person.id)
            let sealed = Bytea(try secrets.seal(device.refreshToken, at: place))
            let credential = device.credential
            statements.append(
                """
                INSERT INTO onboarding.refresh_token
                    (environment_id, person_id, token, device, newest, device_name, issuer, subject)
                SELECT \(environment.rawValue), \(person.id), \(sealed), \(credential.device.key),
                    \(credential.secret.key), \(found.deviceName), \(identity.issuer), \(identity.subject)
                FROM onboarding.session
                WHERE id = \(found.session) AND person_id IS NULL AND expires_at > now()
                """)
        }
        statements += [
            """
            SELECT realm.miss(ARRAY[0]) WHERE NOT EXISTS (
                SELECT FROM onboarding.session
                WHERE id = \(found.session) AND person_id IS NULL AND expires_at > now())
            """,
            AuditRecord.insert(
                [(found.record(.loggedIn, actor: person.email, browser: browser), decision: 0)], in: environment),
            Self.end(found),
            """
            UPDATE onboarding.session SET person_id = \(person.id), email = \(person.email),
                realms_id = \(Registration.objectID(of: person.email, foundedAs: found.organisation.foundedAs)),
                progress = CASE email WHEN \(person.email) THEN progress ELSE 0 END,
                wants_realm = wants_realm OR email <> \(person.email) OR \(found.organisation.initialisesOnLogin)
                    OR NOT EXISTS (SELECT FROM backend.connection WHERE environment_id = \(environment.rawValue))
            WHERE id = \(found.session) AND person_id IS NULL AND expires_at > now()
            """,
        ]
        let update = statements.count - 1
        if try connection.run(statements + events.append([token]))[update].affectedCount == 1 { return true }
        let rows = try connection.run(
            "SELECT FROM onboarding.session WHERE id = \(found.session) AND person_id = \(person.id)")
        return rows.count == 1
    }

    private static func tokensPlace(_ confirm: Bytea) -> String { "login/\(Base64URL.text(confirm.bytes))/tokens" }

    /// Keeps what a provider gave while the person is asked.
    func keep(_ tokens: ProviderTokens, for state: Capability, confirm: Capability) throws -> Statement {
        let json = Array(try JSONEncoder().encode(tokens))
        let sealed = Bytea(try secrets.seal(json, at: Self.tokensPlace(confirm.key)))
        return """
            UPDATE onboarding.login SET confirm = \(confirm.key), tokens = \(sealed) WHERE state = \(state.key)
            """
    }

    /// What was kept; once.
    func takeConfirmed(
        _ confirm: Capability, on connection: inout Connection
    ) throws -> (found: Found, tokens: ProviderTokens)? {
        let rows = try connection.run(
            """
            UPDATE onboarding.login l SET confirm = NULL, tokens = NULL
            FROM onboarding.session s, access.provider p, onboarding.login o
            WHERE l.confirm = \(confirm.key) AND o.state = l.state AND \(sql: Self.isWaiting)
            RETURNING \(sql: LoginSettings.columns), s.id, s.email, l.nonce, s.device_address, s.device_name, o.tokens,
                l.state
            """)
        guard var columns = rows.first?.columns else { return nil }
        let settings = try LoginSettings(&columns)
        let (session, address): (Bytea, String) = (try columns.next(), try columns.next())
        let nonce: String = try columns.next()
        let (deviceAddress, deviceName): (String, String) = (try columns.next(), try columns.next())
        let (sealed, state): (Bytea, Bytea) = (try columns.next(), try columns.next())
        try columns.end()
        guard let (organisation, email) = try who(settings, address, on: &connection) else { return nil }
        let json = try secrets.open(sealed.bytes, at: Self.tokensPlace(confirm.key))
        return (
            Found(
                session: session, state: state, email: email, organisation: organisation, nonce: nonce, verifier: "",
                deviceAddress: deviceAddress, deviceName: deviceName),
            try JSONDecoder().decode(ProviderTokens.self, from: Data(json))
        )
    }

    /// Keeps the names of a token's claims; the same names at most once a minute.
    static func note(
        claims names: [String], in environment: EnvironmentID, on connection: inout Connection
    ) throws {
        try connection.run(
            """
            INSERT INTO onboarding.token_claims AS c (environment_id, names) VALUES (\(environment.rawValue), \(names))
            ON CONFLICT (environment_id) DO UPDATE SET names = excluded.names, seen_at = now()
            WHERE c.names <> excluded.names OR c.seen_at < now() - interval '1 minute'
            """)
    }

    /// Whether there is such a session that has not expired.
    static func isThere(_ id: Capability, on connection: inout Connection) throws -> Bool {
        let rows = try connection.run(
            "SELECT FROM onboarding.session WHERE id = \(id.key) AND expires_at > now()")
        return rows.count == 1
    }

    /// Sessions that wait for their person's realm to be registered: of each environment the oldest.
    ///
    /// An environment without a back end of ours, which an integration looks after, knows whoever has logged in.
    static func wantingRealm(countMax: Int, on connection: inout Connection) throws -> [Wanting] {
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
            Wanting(session: $0, environment: $1, email: $2, isKnown: $3)
        }
    }

    /// A session whose person's realm is to be registered.
    struct Wanting: Sendable {
        let session: Bytea
        let environment: EnvironmentID
        let email: String
        /// Whether the back end knows the person; without that nothing is registered.
        let isKnown: Bool
    }

    /// Deletes sessions whose time has passed, with all that belongs to them, and counts that no longer count.
    ///
    /// - Returns: Whether there may be more.
    static func forgetExpired(countMax: Int, on connection: inout Connection) throws -> Bool {
        let answers = try connection.run([
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
        return answers.contains { $0.affectedCount == countMax }
    }
}

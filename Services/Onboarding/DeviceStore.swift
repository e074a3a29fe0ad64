import Access
import Audit
import FoundationEssentials
import HTTPServer
import Model
import Postgres
import Secrets
import Tenants

/// The SQL of devices that renew their tokens. A device is the row of its login's refresh token.
struct DeviceStore: Sendable {
    let secrets: SecretBox
    /// The time during which one renewal exclusively owns a device; exceeds the total time of its calls and waits.
    let leaseMax: Duration

    /// A renewal in progress. No other renewal of the device starts before its lease ends; its writes succeed only
    /// while it holds the device.
    struct Renewal: Sendable {
        let environment: EnvironmentID
        let id: Int64
        let person: Int32
        let email: String
        let device: String
        /// The subject of the person's account at the provider.
        let subject: String
        let organisation: Organisation
        let refreshToken: String
        let newest: Bytea
        let version: Int64
        /// The time after which no call to the provider may start.
        let callDeadline: ContinuousClock.Instant
    }

    enum BeginResult: Sendable {
        case renewal(Renewal)
        case busy(seconds: Int)
        case loginNeeded(LoginReason)
    }

    /// The outcome of a renewal's write.
    enum WriteResult: Equatable, Sendable {
        case done
        /// Another renewal started after the lease expired; nothing was written.
        case superseded
        /// The device was revoked concurrently.
        case revoked
    }

    /// The issuer of device secrets.
    var issuer: SecretIssuer { SecretIssuer(secrets) }

    /// Whether a credential was issued to its device, even if it is spent since. Otherwise it is a guess, even if the
    /// device exists.
    func hasIssued(_ credential: DeviceCredential, on connection: inout Connection) throws -> Bool {
        let rows = try connection.run(
            """
            SELECT coalesce(\(credential.secret.key) IN (newest, former), false) FROM onboarding.refresh_token
            WHERE device = \(credential.device.key)
            """)
        guard let isCurrent = try rows.first?.decode(Bool.self) else { return false }
        return isCurrent || issuer.hasIssued(credential.secret, for: credential.device)
    }

    /// Starts a renewal, or returns why it cannot start. A spent credential revokes the device.
    ///
    /// - Parameter client: The client's network address.
    func begin(
        _ credential: DeviceCredential, from client: String, on connection: inout Connection
    ) throws -> BeginResult {
        let callDeadline = ContinuousClock.now + leaseMax / 4
        let left = try AccessDirectory.left(on: &connection)
        return try connection.transaction { transaction in
            let rows = try transaction.run(Self.load(credential))
            guard var columns = rows.first?.columns else { return .loginNeeded(.unknown) }
            let settings = try LoginSettings(&columns)
            let (id, person): (Int64, Int32) = (try columns.next(), try columns.next())
            let (email, device): (String, String) = (try columns.next(), try columns.next())
            let (sealed, subject): (Bytea, String) = (try columns.next(), try columns.next())
            let stored = DeviceRule.StoredDevice<Bytea>(
                newest: try columns.next(), former: try columns.next(), isBound: try columns.next(),
                busySeconds: try columns.next())
            try columns.end()
            if let url = left[settings.environment] { throw Problem.environmentMoved(to: url) }
            guard let organisation = try Organisation(settings, secrets: secrets) else { return .loginNeeded(.ended) }
            let environment = organisation.environment
            switch DeviceRule.decide(stored, secret: credential.secret.key) {
            case .ended: return .loginNeeded(.ended)
            case .busy(let seconds): return .busy(seconds: seconds)
            case .reused:
                let record = AuditRecord(actor: email, action: .deviceReused, subject: device, address: client)
                try transaction.run([
                    """
                    UPDATE onboarding.refresh_token SET newest = NULL, former = NULL
                    WHERE environment_id = \(environment.rawValue) AND id = \(id)
                    """,
                    AuditRecord.insert([record], in: environment),
                ])
                return .loginNeeded(.reused)
            case .renew: break
            }
            guard let newest = stored.newest else { return .loginNeeded(.ended) }
            let lease = try transaction.run(
                """
                UPDATE onboarding.refresh_token SET version = version + 1,
                    lease_until = clock_timestamp() + make_interval(secs => \(Double(leaseMax.components.seconds)))
                WHERE environment_id = \(environment.rawValue) AND id = \(id) RETURNING version
                """)
            return .renewal(
                Renewal(
                    environment: environment, id: id, person: person, email: email, device: device, subject: subject,
                    organisation: organisation,
                    refreshToken: try secrets.openText(
                        sealed.bytes, at: SecretContext.refreshToken(environment, person: person)),
                    newest: newest, version: try lease[0].decode(Int64.self), callDeadline: callDeadline))
        }
    }

    private static func load(_ credential: DeviceCredential) -> Statement {
        """
        SELECT \(sql: LoginSettings.columns), t.id, t.person_id, a.email, t.device_name, t.token,
            coalesce(t.subject, ''), t.newest, t.former,
            coalesce(
                t.revoked_at IS NULL AND a.issuer = t.issuer AND a.subject = t.subject AND p.issuer = t.issuer, false),
            coalesce(extract(epoch FROM t.lease_until - clock_timestamp()), 0)::float8
        FROM onboarding.refresh_token t
        JOIN access.provider p ON p.environment_id = t.environment_id
        JOIN access.person a ON a.environment_id = t.environment_id AND a.id = t.person_id
        WHERE t.device = \(credential.device.key) FOR UPDATE OF t
        """
    }

    /// Stores the refresh token that replaces the used one.
    func store(_ refreshToken: String, of renewal: Renewal, on connection: inout Connection) throws -> WriteResult {
        let context = SecretContext.refreshToken(renewal.environment, person: renewal.person)
        let sealed = Bytea(try secrets.seal(refreshToken, at: context))
        let results = try connection.run([
            """
            UPDATE onboarding.refresh_token SET token = \(sealed), obtained_at = now()
            WHERE environment_id = \(renewal.environment.rawValue) AND id = \(renewal.id)
                AND version = \(renewal.version) AND newest = \(renewal.newest) AND revoked_at IS NULL
            """,
            Self.isSuperseded(renewal),
        ])
        return Self.writeResult(results)
    }

    private static func isSuperseded(_ renewal: Renewal) -> Statement {
        """
        SELECT FROM onboarding.refresh_token
        WHERE environment_id = \(renewal.environment.rawValue) AND id = \(renewal.id)
            AND version > \(renewal.version) AND newest IS NOT NULL AND revoked_at IS NULL
        """
    }

    private static func writeResult(_ results: [Rows]) -> WriteResult {
        if results[0].affectedCount == 1 { return .done }
        return results[1].count == 1 ? .superseded : .revoked
    }

    /// Completes a renewal: the next credential replaces the used one. Idempotent.
    func complete(
        _ renewal: Renewal, used: DeviceCredential, next: DeviceCredential, on connection: inout Connection
    ) throws -> WriteResult {
        let results = try connection.run([
            """
            UPDATE onboarding.refresh_token SET newest = \(next.secret.key), former = \(used.secret.key),
                used_at = now(), lease_until = NULL
            WHERE environment_id = \(renewal.environment.rawValue) AND id = \(renewal.id)
                AND version = \(renewal.version) AND newest IN (\(renewal.newest), \(next.secret.key))
                AND revoked_at IS NULL
            """,
            Self.isSuperseded(renewal),
        ])
        return Self.writeResult(results)
    }

    /// Releases the lease of a failed renewal: the same credential can be used again immediately.
    static func release(_ renewal: Renewal) -> Statement {
        """
        UPDATE onboarding.refresh_token SET lease_until = NULL
        WHERE environment_id = \(renewal.environment.rawValue) AND id = \(renewal.id)
            AND version = \(renewal.version)
        """
    }

    /// The refresh token of a device that was logged out.
    struct EndedLogin: Sendable {
        let organisation: Organisation
        let refreshToken: String
    }

    /// Revokes the device of any credential that was issued to it, and erases its refresh token.
    ///
    /// - Returns: `nil` if there is no token to revoke at the provider: the device was already revoked, or its person's
    ///   login has changed.
    /// - Throws: A `Problem` if the environment has moved to another installation.
    func logOut(
        _ credential: DeviceCredential, from client: String, on connection: inout Connection
    ) throws -> EndedLogin? {
        let left = try AccessDirectory.left(on: &connection)
        return try connection.transaction { transaction in
            let rows = try transaction.run(Self.load(credential))
            guard var columns = rows.first?.columns else { return nil }
            let settings = try LoginSettings(&columns)
            let (id, person): (Int64, Int32) = (try columns.next(), try columns.next())
            let (email, device): (String, String) = (try columns.next(), try columns.next())
            let (sealed, _): (Bytea, String) = (try columns.next(), try columns.next())
            let newest: Bytea? = try columns.next()
            if let url = left[settings.environment] { throw Problem.environmentMoved(to: url) }
            guard newest != nil else { return nil }
            let environment = settings.environment
            let record = AuditRecord(actor: email, action: .loggedOut, subject: device, address: client)
            try transaction.run([
                """
                UPDATE onboarding.refresh_token SET revoked_at = coalesce(revoked_at, now()), token = '',
                    newest = NULL, former = NULL
                WHERE environment_id = \(environment.rawValue) AND id = \(id)
                """,
                AuditRecord.insert([record], in: environment),
            ])
            let context = SecretContext.refreshToken(environment, person: person)
            // A secret that cannot be opened does not prevent the logout.
            guard let organisation = try? Organisation(settings, secrets: secrets),
                let refreshToken = try? secrets.openText(sealed.bytes, at: context)
            else { return nil }
            return EndedLogin(organisation: organisation, refreshToken: refreshToken)
        }
    }

    /// Revokes the device and erases its refresh token, which the provider no longer accepts.
    static func end(_ renewal: Renewal, from client: String) -> [Statement] {
        let record = AuditRecord(actor: renewal.email, action: .deviceEnded, subject: renewal.device, address: client)
        return [
            """
            SELECT realm.miss(ARRAY[0]) WHERE NOT EXISTS (
                SELECT FROM onboarding.refresh_token
                WHERE environment_id = \(renewal.environment.rawValue) AND id = \(renewal.id)
                    AND version = \(renewal.version) AND revoked_at IS NULL)
            """,
            """
            UPDATE onboarding.refresh_token SET revoked_at = now(), token = '', newest = NULL, former = NULL
            WHERE environment_id = \(renewal.environment.rawValue) AND id = \(renewal.id)
                AND version = \(renewal.version) AND revoked_at IS NULL
            """,
            AuditRecord.insert([(record, decision: 0)], in: renewal.environment),
        ]
    }
}

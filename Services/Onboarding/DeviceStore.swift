import Access
import Audit
import FoundationEssentials
import HTTPServer
import Identity
import Model
import ObjectStore
import Postgres
import Secrets
import Tenants

/// The SQL of devices that renew their tokens. Each is the row of its login's refresh token.
struct DeviceStore: Sendable {
    let secrets: SecretBox
    /// How long a renewal may take before another one may begin. More than its calls and waits can take together.
    let leaseMax: Duration

    /// A renewal that is under way. Nobody else renews the device's token before its lease ends, and what it writes
    /// counts only while nobody has.
    struct Renewal: Sendable {
        let environment: EnvironmentID
        let id: Int64
        let person: Int32
        let email: String
        let device: String
        /// The person's at the provider.
        let subject: String
        let organisation: Organisation
        let refreshToken: String
        let newest: Bytea
        let version: Int64
        /// No call to the provider begins after this.
        let callsUntil: ContinuousClock.Instant
    }

    enum Beginning: Sendable {
        case renewal(Renewal)
        case busy(seconds: Int)
        case loginNeeded(LoginReason)
    }

    /// What became of a renewal's write.
    enum Written: Equatable, Sendable {
        case done
        /// Another renewal has begun since, and nothing was written: the lease had ended.
        case overtaken
        /// The device was shut out meanwhile.
        case shutOut
    }

    /// Issues the secrets of devices.
    var issuer: SecretIssuer { SecretIssuer(secrets) }

    /// Whether a device was given this credential, which may be spent since. Otherwise it is a guess, also if it names
    /// a device that is there.
    func hasIssued(_ credential: DeviceCredential, on connection: inout Connection) throws -> Bool {
        let rows = try connection.run(
            """
            SELECT coalesce(\(credential.secret.key) IN (newest, former), false) FROM onboarding.refresh_token
            WHERE device = \(credential.device.key)
            """)
        guard let isCurrent = try rows.first?.decode(Bool.self) else { return false }
        return isCurrent || issuer.hasIssued(credential.secret, for: credential.device)
    }

    /// Begins a renewal, or says why there is none. A spent credential shuts the device out.
    ///
    /// - Parameter client: The network address the request comes from.
    func begin(
        _ credential: DeviceCredential, from client: String, on connection: inout Connection
    ) throws -> Beginning {
        let callsUntil = ContinuousClock.now + leaseMax / 4
        let left = try AccessDirectory.left(on: &connection)
        return try connection.transaction { transaction in
            let rows = try transaction.run(Self.load(credential))
            guard var columns = rows.first?.columns else { return .loginNeeded(.unknown) }
            let settings = try LoginSettings(&columns)
            let (id, person): (Int64, Int32) = (try columns.next(), try columns.next())
            let (email, device): (String, String) = (try columns.next(), try columns.next())
            let (sealed, subject): (Bytea, String) = (try columns.next(), try columns.next())
            let stored = DeviceRule.Stored<Bytea>(
                newest: try columns.next(), former: try columns.next(), isPersons: try columns.next(),
                busySeconds: try columns.next())
            try columns.end()
            if let url = left[settings.environment] { throw Problem.environmentMoved(to: url) }
            guard let organisation = try Organisation(settings, secrets: secrets) else { return .loginNeeded(.ended) }
            let environment = organisation.environment
            switch DeviceRule.judge(stored, secret: credential.secret.key) {
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
                    newest: newest, version: try lease[0].decode(Int64.self), callsUntil: callsUntil))
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

    /// Keeps the refresh token that took the place of the one that was used.
    func keep(
        _ refreshToken: String, of renewal: Renewal, on connection: inout Connection
    ) throws -> Written {
        let place = SecretContext.refreshToken(renewal.environment, person: renewal.person)
        let sealed = Bytea(try secrets.seal(refreshToken, at: place))
        let answers = try connection.run([
            """
            UPDATE onboarding.refresh_token SET token = \(sealed), obtained_at = now()
            WHERE environment_id = \(renewal.environment.rawValue) AND id = \(renewal.id)
                AND version = \(renewal.version) AND newest = \(renewal.newest) AND revoked_at IS NULL
            """,
            Self.isOvertaken(renewal),
        ])
        return Self.written(answers)
    }

    private static func isOvertaken(_ renewal: Renewal) -> Statement {
        """
        SELECT FROM onboarding.refresh_token
        WHERE environment_id = \(renewal.environment.rawValue) AND id = \(renewal.id)
            AND version > \(renewal.version) AND newest IS NOT NULL AND revoked_at IS NULL
        """
    }

    private static func written(_ answers: [Rows]) -> Written {
        if answers[0].affectedCount == 1 { return .done }
        return answers[1].count == 1 ? .overtaken : .shutOut
    }

    /// Ends a renewal: the next credential takes the place of one that was not used. Done again, it does the same.
    func complete(
        _ renewal: Renewal, used: DeviceCredential, next: DeviceCredential, on connection: inout Connection
    ) throws -> Written {
        let answers = try connection.run([
            """
            UPDATE onboarding.refresh_token SET newest = \(next.secret.key), former = \(used.secret.key),
                used_at = now(), lease_until = NULL
            WHERE environment_id = \(renewal.environment.rawValue) AND id = \(renewal.id)
                AND version = \(renewal.version) AND newest IN (\(renewal.newest), \(next.secret.key))
                AND revoked_at IS NULL
            """,
            Self.isOvertaken(renewal),
        ])
        return Self.written(answers)
    }

    /// Ends a renewal that came to nothing: the same credential may be used again at once.
    static func release(_ renewal: Renewal) -> Statement {
        """
        UPDATE onboarding.refresh_token SET lease_until = NULL
        WHERE environment_id = \(renewal.environment.rawValue) AND id = \(renewal.id)
            AND version = \(renewal.version)
        """
    }

    /// Ends the device: the provider takes its refresh token no more, and nothing is kept of it.
    static func end(_ renewal: Renewal, from client: String) -> [Statement] {
        let record = AuditRecord(
            actor: renewal.email, action: .deviceEnded, subject: renewal.device, address: client)
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

import Essentials
import HTTPServer
import Model
import Postgres

/// A rate limiter shared by all instances, with fixed windows of one minute.
enum RateLimiter {
    struct Key: Sendable {
        let name: String
        let countMax: Int
    }

    /// Limits registrations of an e-mail address per network address: otherwise other clients could use up its limit.
    static func key(address: String, from client: String, _ limits: OnboardingLimits) -> Key {
        Key(name: "address:\(ClientAddress.network(of: client)) \(address)", countMax: limits.addressCountMax)
    }

    static func key(domain: String, _ limits: OnboardingLimits) -> Key {
        Key(name: "domain:\(domain)", countMax: limits.domainCountMax)
    }

    static func key(client: String, _ limits: OnboardingLimits) -> Key {
        Key(name: "client:\(ClientAddress.network(of: client))", countMax: limits.clientCountMax)
    }

    /// Limits renewals of a device's token with issued credentials, failed ones included.
    static func key(device: Capability, _ limits: OnboardingLimits) -> Key {
        Key(name: "device:\(Base64URL.text(device.key.bytes))", countMax: limits.renewalCountMax)
    }

    /// Limits invalid session ids, states and credentials.
    static func key(guessesOf client: String, _ limits: OnboardingLimits) -> Key {
        Key(name: "guess:\(ClientAddress.network(of: client))", countMax: limits.clientCountMax)
    }

    /// Counts a registration against the limits of its network address, e-mail address and domain, each only if the
    /// previous limits hold. Beyond the domain's limit, each network address still has the allowance of one e-mail
    /// address: no client can use up the limits of others.
    ///
    /// - Returns: Whether the registration is within its limits.
    static func countRegistration(
        of email: EmailAddress, from client: String, _ limits: OnboardingLimits, on connection: inout Connection
    ) throws -> Bool {
        let (first, second) = (key(client: client, limits), key(address: email.description, from: client, limits))
        let third = key(domain: email.domain, limits)
        let rows = try connection.run(
            """
            WITH a AS (
                INSERT INTO onboarding.rate AS r VALUES (\(first.name), now() + interval '1 minute', 1)
                \(sql: counted)),
            b AS (
                INSERT INTO onboarding.rate AS r SELECT \(second.name), now() + interval '1 minute', 1 FROM a
                WHERE count <= \(Int32(first.countMax)) \(sql: counted)),
            c AS (
                INSERT INTO onboarding.rate AS r SELECT \(third.name), now() + interval '1 minute', 1 FROM b
                WHERE count <= \(Int32(second.countMax)) \(sql: counted))
            SELECT FROM a, c WHERE c.count <= \(Int32(third.countMax)) OR a.count <= \(Int32(limits.addressCountMax))
            """)
        return rows.count == 1
    }

    /// Counts an action.
    ///
    /// - Returns: Whether it is within its limit.
    static func count(_ key: Key, on connection: inout Connection) throws -> Bool {
        let rows = try connection.run(
            """
            INSERT INTO onboarding.rate AS r VALUES (\(key.name), now() + interval '1 minute', 1)
            \(sql: counted)
            """)
        return Int(try rows[0].decode(Int32.self)) <= key.countMax
    }

    private static let counted: StaticString = """
        ON CONFLICT (key) DO UPDATE SET
            count = CASE WHEN r.until_at <= now() THEN 1 ELSE least(r.count, 2147483646) + 1 END,
            until_at = CASE WHEN r.until_at <= now() THEN excluded.until_at ELSE r.until_at END
        RETURNING count
        """
}

import Essentials
import Postgres
import Runtime

/// Counts what is tried, over all instances, in windows of a minute.
enum RateLimiter {
    struct Key: Sendable {
        let name: String
        let countMax: Int
    }

    static func key(address: String, _ limits: OnboardingLimits) -> Key {
        Key(name: "address:\(address)", countMax: limits.addressCountMax)
    }

    static func key(domain: String, _ limits: OnboardingLimits) -> Key {
        Key(name: "domain:\(domain)", countMax: limits.domainCountMax)
    }

    static func key(client: String, _ limits: OnboardingLimits) -> Key {
        Key(name: "client:\(ClientAddress.network(of: client))", countMax: limits.clientCountMax)
    }

    /// Renewals of one device's token, also those that come to nothing.
    static func key(device: Capability, _ limits: OnboardingLimits) -> Key {
        Key(name: "device:\(Base64URL.text(device.key.bytes))", countMax: limits.renewalCountMax)
    }

    /// Wrong session ids, states and credentials.
    static func key(guessesOf client: String, _ limits: OnboardingLimits) -> Key {
        Key(name: "guess:\(ClientAddress.network(of: client))", countMax: limits.clientCountMax)
    }

    /// Counts a registration against three bounds, each only while those before it hold: nobody uses up others' bounds
    /// beyond the own.
    ///
    /// - Returns: Whether all are within their bounds.
    static func count(_ first: Key, _ second: Key, _ third: Key, on connection: inout Connection) throws -> Bool {
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
            SELECT FROM c WHERE count <= \(Int32(third.countMax))
            """)
        return rows.count == 1
    }

    /// - Returns: Whether it is within its bound.
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

    /// Whether a bound is passed, without counting.
    static func isPassed(_ key: Key, on connection: inout Connection) throws -> Bool {
        let rows = try connection.run(
            "SELECT count FROM onboarding.rate WHERE key = \(key.name) AND until_at > now()")
        guard let count = try rows.first?.decode(Int32.self) else { return false }
        return Int(count) >= key.countMax
    }
}

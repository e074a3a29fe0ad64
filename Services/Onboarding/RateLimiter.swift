import Postgres

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
        Key(name: "client:\(client)", countMax: limits.clientCountMax)
    }

    /// Wrong session ids and states.
    static func key(guessesOf client: String, _ limits: OnboardingLimits) -> Key {
        Key(name: "guess:\(client)", countMax: limits.clientCountMax)
    }

    /// Counts one of each.
    ///
    /// - Returns: Whether all are within their bounds.
    static func count(_ keys: [Key], on connection: inout Connection) throws -> Bool {
        // In one order, so that two requests cannot wait for each other.
        let names = keys.map(\.name).sorted()
        let rows = try connection.run(
            """
            INSERT INTO onboarding.rate AS r (key, until_at, count)
            SELECT k, now() + interval '1 minute', 1 FROM unnest(\(names)) AS u(k)
            ON CONFLICT (key) DO UPDATE SET
                count = CASE WHEN r.until_at <= now() THEN 1 ELSE r.count + 1 END,
                until_at = CASE WHEN r.until_at <= now() THEN excluded.until_at ELSE r.until_at END
            RETURNING key, count
            """)
        for row in rows {
            let name: String = try row.value(0)
            let count = Int(try row.value(1, as: Int32.self))
            if let key = keys.first(where: { $0.name == name }), count > key.countMax { return false }
        }
        return true
    }

    /// Whether a bound is passed, without counting.
    static func isPassed(_ key: Key, on connection: inout Connection) throws -> Bool {
        let rows = try connection.run(
            "SELECT count FROM onboarding.rate WHERE key = \(key.name) AND until_at > now()")
        return rows.count == 1 ? Int(try rows[0].value(0, as: Int32.self)) >= key.countMax : false
    }
}

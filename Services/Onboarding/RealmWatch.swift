import Identity
import Logging
import Model
import Postgres

/// Registers the realms of people who come in, and sees when they are filled. Everything it knows is in PostgreSQL: any
/// instance does it, and a repeat does nothing.
struct RealmWatch: Sendable {
    let events: EventStore
    let logger: Logger

    private static let countMax = 500

    /// Registers the people that new sessions wait for.
    ///
    /// - Returns: How many sessions were served.
    func register(on connection: inout Connection) throws -> Int {
        let wanting = try SessionStore.wantingRealm(countMax: Self.countMax, on: &connection)
        for (environment, sessions) in Dictionary(grouping: wanting, by: \.environment) {
            let emails = Set(sessions.filter(\.isKnown).map(\.email)).sorted()
            do {
                if !emails.isEmpty { try Registration.register(emails, in: environment, on: &connection) }
                // Under the lock of who tells: both write several sessions.
                try connection.run([
                    "SELECT pg_advisory_xact_lock(\(Self.lockKey))",
                    "UPDATE onboarding.session SET wants_realm = false WHERE id = ANY (\(sessions.map(\.session)))",
                ])
            } catch let error as PostgresError where error.isRetriable {
                // An environment that is busy holds the others up by the time-out of a lock at most.
                logger.warning(
                    "realms are not registered yet", metadata: ["environment": "\(environment)", "error": "\(error)"])
            }
        }
        return wanting.count
    }

    /// Tells sessions that their person's realm is there, or filled, or will never be.
    ///
    /// Where unknown people are hidden, nothing is told before the login: it would tell a stranger who is known.
    ///
    /// - Returns: How many events were stored.
    func tell(on connection: inout Connection) throws -> Int {
        // One instance at a time: otherwise two would tell the same.
        try connection.transaction { transaction in
            let lock = try transaction.run(["SELECT pg_try_advisory_xact_lock(\(Self.lockKey))"])[0]
            guard try lock[0].value(0, as: Bool.self) else { return 0 }
            let news = try news(try transaction.run([Self.due])[0])
            if !news.isEmpty { try transaction.run(try events.append(news)) }
            return news.count
        }
    }

    private static let lockKey: Int64 = 0x6669_656c_646f_6e62

    /// Sessions with something to be told. Rows: session, progress, path (null without a realm), whether it is filled.
    private static var due: Statement {
        """
        SELECT s.id, s.progress, o.fields->>'path', coalesce((o.fields->>'isInitialized')::boolean, false)
        FROM onboarding.session s
        JOIN access.provider p ON p.environment_id = s.environment_id
        LEFT JOIN realm.realm r ON r.environment_id = s.environment_id AND r.path = \(RealmPath.users.description)
        LEFT JOIN realm.object o ON o.environment_id = s.environment_id AND o.realm_id = r.id
            AND o.kind = \(Kind.realms.rawValue) AND o.id = s.realms_id AND NOT o.deleted
        WHERE s.progress < 2 AND s.expires_at > now() AND (s.person_id IS NOT NULL OR NOT p.hide_unknown)
            AND CASE WHEN o.id IS NULL THEN s.person_id IS NOT NULL AND NOT s.wants_realm
                ELSE s.progress = 0 OR coalesce((o.fields->>'isInitialized')::boolean, false) END
        LIMIT \(Int64(countMax))
        """
    }

    private func news(_ rows: Rows) throws -> [EventStore.New] {
        var news: [EventStore.New] = []
        for row in rows {
            let session: Bytea = try row.value(0)
            let progress: Int16 = try row.value(1)
            guard let path = try row.optional(2, as: String.self) else {
                let event = DeviceEvent.error(.personUnknown, retryURL: nil)
                news.append(EventStore.New(session: session, event: event, progress: 3))
                continue
            }
            if progress == 0 {
                news.append(EventStore.New(session: session, event: .realmInitialized(path: path), progress: 1))
            }
            if try row.value(3) {
                news.append(EventStore.New(session: session, event: .dataReady, progress: 2))
            }
        }
        return news
    }
}

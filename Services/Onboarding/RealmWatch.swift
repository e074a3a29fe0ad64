import Access
import FoundationEssentials
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
            } catch let error as PostgresError where error.isRetriable || error.isDataError {
                // An environment that is busy holds the others up by the time-out of a lock at most; one that has moved
                // to another installation takes nobody any more.
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
            guard try lock[0].decode(Bool.self) else { return 0 }
            let due = try transaction.run([Self.due])[0]
                .decode(Bytea.self, UUID.self, Int16.self, String?.self, Bool.self)
                .map { Due(session: $0, realms: $1, progress: $2, path: $3, isFilled: $4) }
            let news = news(due, of: try Self.unchanged(due, in: &transaction))
            if !news.isEmpty { try transaction.run(try events.append(news)) }
            return news.count
        }
    }

    private static let lockKey: Int64 = 0x6669_656c_646f_6e62

    /// A session with something to be told.
    private struct Due {
        let session: Bytea
        /// The registration of the realm.
        let realms: UUID
        let progress: Int16
        /// `nil` without a realm.
        let path: String?
        let isFilled: Bool
    }

    /// Rows: the fields of ``Due``, in their order.
    private static var due: Statement {
        """
        SELECT s.id, s.realms_id, s.progress, o.fields::json->>'path',
            coalesce((o.fields::json->>'isInitialized')::boolean, false)
        FROM onboarding.session s
        JOIN access.provider p ON p.environment_id = s.environment_id
        LEFT JOIN realm.realm r ON r.environment_id = s.environment_id AND r.path = \(RealmPath.users.description)
        LEFT JOIN store.object o ON o.environment_id = s.environment_id AND o.realm_id = r.id
            AND o.kind = \(Kind.realms) AND o.id = s.realms_id AND NOT o.deleted
        WHERE s.progress < 2 AND s.expires_at > now() AND (s.person_id IS NOT NULL OR NOT p.hide_unknown)
            AND CASE WHEN o.id IS NULL THEN s.person_id IS NOT NULL AND NOT s.wants_realm
                ELSE s.progress = 0 OR coalesce((o.fields::json->>'isInitialized')::boolean, false) END
        LIMIT \(Int64(countMax))
        """
    }

    /// Locks the sessions that are still about the same realm: a login that ended meanwhile may have found another.
    private static func unchanged(_ due: [Due], in transaction: inout Transaction) throws -> Set<Bytea> {
        let rows = try transaction.run([
            """
            SELECT s.id FROM onboarding.session s
            JOIN unnest(\(due.map(\.session)), \(due.map(\.realms))) AS u(id, realms_id)
                ON u.id = s.id AND u.realms_id = s.realms_id
            ORDER BY s.id FOR UPDATE OF s
            """
        ])[0]
        return Set(try rows.decode(Bytea.self))
    }

    private func news(_ due: [Due], of sessions: Set<Bytea>) -> [EventStore.New] {
        var news: [EventStore.New] = []
        for due in due where sessions.contains(due.session) {
            guard let path = due.path else {
                let event = DeviceEvent.error(.personUnknown, retryURL: nil)
                news.append(EventStore.New(session: due.session, event: event, progress: 3))
                continue
            }
            if due.progress == 0 {
                news.append(EventStore.New(session: due.session, event: .realmInitialized(path: path), progress: 1))
            }
            if due.isFilled { news.append(EventStore.New(session: due.session, event: .dataReady, progress: 2)) }
        }
        return news
    }
}

import Access
import Essentials
import FoundationEssentials
import Logging
import Model
import Postgres

/// Wakes the threads of ``RealmWatch`` when sessions of this instance change.
struct SessionChanges: Sendable {
    let toRegister: Wakeup
    let toNotify: Wakeup

    /// - Throws: `NoFileDescriptor`
    init() throws { (toRegister, toNotify) = (try Wakeup(), try Wakeup()) }

    func signal() {
        toRegister.signal()
        toNotify.signal()
    }
}

/// Registers the realms of people who log in, and notifies sessions when they are initialised. All state is in
/// PostgreSQL: every instance runs it, and repetitions have no effect.
struct RealmWatch: Sendable {
    let events: EventStore
    let logger: Logger

    private static let countMax = 500

    /// Registers the people of new sessions.
    ///
    /// - Returns: The number of sessions processed.
    func register(on connection: inout Connection) throws -> Int {
        let pending = try SessionStore.awaitingRegistration(countMax: Self.countMax, on: &connection)
        for (environment, sessions) in Dictionary(grouping: pending, by: \.environment) {
            let emails = Set(sessions.filter(\.isKnown).map(\.email)).sorted()
            do {
                if !emails.isEmpty { try Registration.register(emails, in: environment, on: &connection) }
                // Takes the lock of `notify`, which also writes several sessions.
                try connection.run([
                    "SELECT pg_advisory_xact_lock(\(Self.lockKey))",
                    "UPDATE onboarding.session SET wants_realm = false WHERE id = ANY (\(sessions.map(\.session)))",
                ])
            } catch let error as PostgresError where error.isRetriable || error.isDataError {
                // A busy environment delays the others by at most one lock timeout; one that has moved to another
                // installation rejects registrations.
                logger.log(
                    level: error.isLocked ? .info : .warning, "realm registration deferred",
                    metadata: ["environment": "\(environment)", "error": "\(error)"])
            }
        }
        return pending.count
    }

    /// Notifies sessions that their person's realm exists, is initialised, or will never exist.
    ///
    /// If the environment hides unknown people, sends nothing before the login: it would disclose who is known.
    ///
    /// - Returns: Whether sessions wait for their realms.
    func notify(on connection: inout Connection) throws -> Bool {
        // One instance at a time, to prevent duplicate events.
        try connection.transaction { transaction in
            let lock = try transaction.run(["SELECT pg_try_advisory_xact_lock(\(Self.lockKey))"])[0]
            guard try lock[0].decode(Bool.self) else { return true }
            let due = try transaction.run([Self.due])[0]
                .decode(Bytea.self, UUID.self, Int16.self, String?.self, Bool.self)
                .map { DueSession(session: $0, realms: $1, progress: $2, path: $3, isInitialized: $4) }
            let newEvents = makeEvents(for: due, of: try Self.unchanged(due, in: &transaction))
            if !newEvents.isEmpty { try transaction.run(try events.append(newEvents)) }
            return try transaction.run(Self.areWaiting)[0].decode(Bool.self)
        }
    }

    private static let lockKey: Int64 = 0x6669_656c_646f_6e62

    /// A session with a pending event.
    private struct DueSession {
        let session: Bytea
        /// The id of the realm's registration.
        let realms: UUID
        let progress: Int16
        /// `nil` without a realm.
        let path: String?
        let isInitialized: Bool
    }

    private static let areWaiting: Statement =
        "SELECT EXISTS (SELECT FROM onboarding.session WHERE progress < 2 AND expires_at > now())"

    /// Selects the columns of ``DueSession``.
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

    /// Locks the sessions that still refer to the same realm: a concurrent login may have assigned another one.
    private static func unchanged(_ due: [DueSession], in transaction: inout Transaction) throws -> Set<Bytea> {
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

    private func makeEvents(for due: [DueSession], of sessions: Set<Bytea>) -> [EventStore.NewEvent] {
        var newEvents: [EventStore.NewEvent] = []
        for due in due where sessions.contains(due.session) {
            guard let path = due.path else {
                let event = DeviceEvent.error(.personUnknown, retryURL: nil)
                newEvents.append(EventStore.NewEvent(session: due.session, event: event, progress: 3))
                continue
            }
            if due.progress == 0 {
                let event = DeviceEvent.realmInitialized(path: path)
                newEvents.append(EventStore.NewEvent(session: due.session, event: event, progress: 1))
            }
            if due.isInitialized {
                newEvents.append(EventStore.NewEvent(session: due.session, event: .dataReady, progress: 2))
            }
        }
        return newEvents
    }
}

import Essentials
import FoundationEssentials
import Model
import Postgres
import Secrets

/// The SQL of events.
struct EventStore: Sendable {
    let secrets: SecretBox

    /// An event to be told to a session's device.
    struct New: Sendable {
        let session: Bytea
        let event: DeviceEvent
        /// What the session knows of its realm afterwards.
        var progress: Int16 = 0
    }

    /// An event as it is stored.
    struct Stored: Sendable {
        let session: Bytea
        /// Its id for the device, which grows in the order of commits.
        let position: Int64
        let name: String
        fileprivate let sealed: Bytea
    }

    /// An event for its device.
    struct Opened: Sendable {
        let position: Int64
        let name: String
        let payload: [UInt8]

        /// The line a device gets.
        var line: String {
            "{\"id\":\(position),\"event\":\"\(name)\",\"payload\":\(String(decoding: payload, as: UTF8.self))}"
        }
    }

    private static func place(_ session: Bytea, _ name: String) -> String {
        "event/\(Base64URL.text(session.bytes))/\(name)"
    }

    /// The statements that store events, the last of their transaction.
    ///
    /// They hold the counter's lock until the commit, so that who has seen a position has seen all before it; what
    /// locks sessions comes before. A session has each event but `error` once: a repeat does nothing.
    func append(_ news: [New]) throws -> [Statement] {
        let sessions = news.map(\.session)
        let payloads = try news.map { new in
            Bytea(try secrets.seal(try new.event.payload(), at: Self.place(new.session, new.event.name)))
        }
        let count = Int64(news.count)
        return [
            """
            UPDATE onboarding.session s SET progress = greatest(s.progress, i.progress)
            FROM (
                SELECT session_id, max(progress) AS progress
                FROM unnest(\(sessions), \(news.map(\.progress))) AS u(session_id, progress) GROUP BY 1
            ) i
            WHERE s.id = i.session_id AND s.progress < i.progress
            """,
            "UPDATE onboarding.counter SET position = position + \(count)",
            """
            INSERT INTO onboarding.event (session_id, position, name, payload)
            SELECT i.session_id, c.position - \(count) + i.n, i.name, i.payload
            FROM onboarding.counter c,
                unnest(\(sessions), \(news.map(\.event.name)), \(payloads))
                    WITH ORDINALITY AS i(session_id, name, payload, n)
            JOIN onboarding.session s ON s.id = i.session_id AND s.expires_at > now()
            ON CONFLICT DO NOTHING
            """,
        ]
    }

    static func position(on connection: inout Connection) throws -> Int64 {
        try connection.run("SELECT position FROM onboarding.counter")[0].decode(Int64.self)
    }

    /// Events after a position that wait for their device, in their order.
    func events(after position: Int64, countMax: Int, on connection: inout Connection) throws -> [Stored] {
        try stored(
            connection.run(
                """
                SELECT session_id, position, name, payload FROM onboarding.event
                WHERE position > \(position) AND payload IS NOT NULL ORDER BY position LIMIT \(Int64(countMax))
                """))
    }

    /// What waits for a session's device; `nil` when the session has come to its end.
    func waiting(for session: Bytea, on connection: inout Connection) throws -> [Opened]? {
        let answers = try connection.run([
            """
            SELECT session_id, position, name, payload FROM onboarding.event
            WHERE session_id = \(session) AND payload IS NOT NULL ORDER BY position
            """,
            Self.isOver(session),
        ])
        if try answers[1].first?.decode(Bool.self) == true { return nil }
        return try stored(answers[0]).map(open)
    }

    /// Whether a session is logged in, told all there is, and all of it acknowledged.
    private static func isOver(_ session: Bytea) -> Statement {
        """
        SELECT s.person_id IS NOT NULL AND s.progress >= 2 AND NOT EXISTS (
            SELECT FROM onboarding.event e WHERE e.session_id = s.id AND e.payload IS NOT NULL)
        FROM onboarding.session s WHERE s.id = \(session)
        """
    }

    /// - Throws: `SecretBox.Failure` when the key it was sealed with is not configured here.
    func open(_ event: Stored) throws -> Opened {
        Opened(
            position: event.position, name: event.name,
            payload: try secrets.open(event.sealed.bytes, at: Self.place(event.session, event.name)))
    }

    /// Forgets what a device has: an acknowledged event is not told again.
    ///
    /// - Returns: Whether the session has come to its end.
    static func acknowledge(_ position: Int64, of session: Bytea, on connection: inout Connection) throws -> Bool {
        let answers = try connection.run([
            """
            UPDATE onboarding.event SET payload = NULL WHERE session_id = \(session) AND position = \(position)
            """,
            isOver(session),
        ])
        return try answers[1].first?.decode(Bool.self) ?? false
    }

    private func stored(_ rows: Rows) throws -> [Stored] {
        try rows.decode(Bytea.self, Int64.self, String.self, Bytea.self).map {
            Stored(session: $0, position: $1, name: $2, sealed: $3)
        }
    }
}

import Essentials
import Postgres
import Secrets

/// The SQL of the events of sessions.
struct EventStore: Sendable {
    let secrets: SecretBox

    /// An event to append to a session.
    struct NewEvent: Sendable {
        let session: Bytea
        let event: DeviceEvent
        /// The session's progress after the event: 1 with a realm, 2 with its data, 3 if the person is unknown.
        var progress: Int16 = 0
    }

    /// A stored, encrypted event.
    struct StoredEvent: Sendable {
        let session: Bytea
        /// The id, which increases in commit order.
        let position: Int64
        let name: String
        fileprivate let sealed: Bytea
    }

    /// A decrypted event.
    struct DecryptedEvent: Sendable {
        let position: Int64
        let name: String
        let payload: [UInt8]

        /// The message to the device.
        var line: String {
            "{\"id\":\(position),\"event\":\"\(name)\",\"payload\":\(String(decoding: payload, as: UTF8.self))}"
        }
    }

    private static func context(_ session: Bytea, _ name: String) -> String {
        "event/\(Base64URL.text(session.bytes))/\(name)"
    }

    /// Returns statements that append events; they must be the last ones of their transaction.
    ///
    /// They hold the counter's lock until the commit, so that a reader of a position has read all earlier ones; lock
    /// sessions before. A session has each event except `error` once: repeated appends have no effect.
    func append(_ newEvents: [NewEvent]) throws -> [Statement] {
        let sessions = newEvents.map(\.session)
        let payloads = try newEvents.map { new in
            Bytea(try secrets.seal(try new.event.payload(), at: Self.context(new.session, new.event.name)))
        }
        let count = Int64(newEvents.count)
        return [
            """
            UPDATE onboarding.session s SET progress = greatest(s.progress, i.progress)
            FROM (
                SELECT session_id, max(progress) AS progress
                FROM unnest(\(sessions), \(newEvents.map(\.progress))) AS u(session_id, progress) GROUP BY 1
            ) i
            WHERE s.id = i.session_id AND s.progress < i.progress
            """,
            "UPDATE onboarding.counter SET position = position + \(count)",
            """
            INSERT INTO onboarding.event (session_id, position, name, payload)
            SELECT i.session_id, c.position - \(count) + i.n, i.name, i.payload
            FROM onboarding.counter c,
                unnest(\(sessions), \(newEvents.map(\.event.name)), \(payloads))
                    WITH ORDINALITY AS i(session_id, name, payload, n)
            JOIN onboarding.session s ON s.id = i.session_id AND s.expires_at > now()
            ON CONFLICT DO NOTHING
            """,
        ]
    }

    static func position(on connection: inout Connection) throws -> Int64 {
        try connection.run("SELECT position FROM onboarding.counter")[0].decode(Int64.self)
    }

    /// Returns the unacknowledged events after a position, in order.
    func events(after position: Int64, countMax: Int, on connection: inout Connection) throws -> [StoredEvent] {
        try stored(
            connection.run(
                """
                SELECT session_id, position, name, payload FROM onboarding.event
                WHERE position > \(position) AND payload IS NOT NULL ORDER BY position LIMIT \(Int64(countMax))
                """))
    }

    /// Returns a session's unacknowledged events; `nil` if the session is complete.
    func pendingEvents(for session: Bytea, on connection: inout Connection) throws -> [DecryptedEvent]? {
        let results = try connection.run([
            """
            SELECT session_id, position, name, payload FROM onboarding.event
            WHERE session_id = \(session) AND payload IS NOT NULL ORDER BY position
            """,
            Self.isComplete(session),
        ])
        if try results[1].first?.decode(Bool.self) == true { return nil }
        return try stored(results[0]).map(open)
    }

    /// Returns a statement that selects whether a session is complete: logged in, with all events sent and
    /// acknowledged.
    private static func isComplete(_ session: Bytea) -> Statement {
        """
        SELECT s.person_id IS NOT NULL AND s.progress >= 2 AND NOT EXISTS (
            SELECT FROM onboarding.event e WHERE e.session_id = s.id AND e.payload IS NOT NULL)
        FROM onboarding.session s WHERE s.id = \(session)
        """
    }

    /// Decrypts an event.
    ///
    /// - Throws: `SecretBox.Failure` if its key is not configured here.
    func open(_ event: StoredEvent) throws -> DecryptedEvent {
        DecryptedEvent(
            position: event.position, name: event.name,
            payload: try secrets.open(event.sealed.bytes, at: Self.context(event.session, event.name)))
    }

    /// Deletes the payload of an acknowledged event, so that it is not sent again.
    ///
    /// - Returns: Whether the session is complete.
    static func acknowledge(_ position: Int64, of session: Bytea, on connection: inout Connection) throws -> Bool {
        let results = try connection.run([
            """
            UPDATE onboarding.event SET payload = NULL WHERE session_id = \(session) AND position = \(position)
            """,
            isComplete(session),
        ])
        return try results[1].first?.decode(Bool.self) ?? false
    }

    private func stored(_ rows: Rows) throws -> [StoredEvent] {
        try rows.decode(Bytea.self, Int64.self, String.self, Bytea.self).map {
            StoredEvent(session: $0, position: $1, name: $2, sealed: $3)
        }
    }
}

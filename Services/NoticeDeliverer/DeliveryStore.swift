import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// The SQL of `delivery.shipment`.
enum DeliveryStore {
    /// Limit on the rows of one person loaded at a time; above the limit on a person's notices of all sorts, so that a
    /// digest is complete.
    static let rowsMax: Int64 = 3_000

    /// The choices of people. Rows: as `RealmObject` reads them.
    static func choices(in realms: [Int32], of environment: EnvironmentID) -> Statement {
        """
        SELECT o.realm_id, o.kind, o.id, o.position, o.edit_position, o.fields
        FROM (SELECT DISTINCT id FROM unnest(\(realms)) AS r(id)) r CROSS JOIN LATERAL (
            SELECT * FROM store.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id AND kind = \(Kind.deliveryChoice)
                AND NOT deleted
            ORDER BY id LIMIT 1
        ) o
        """
    }

    /// The waiting rows of people. Rows: as ``read(_:)`` reads them.
    static func waiting(in realms: [Int32], of environment: EnvironmentID) -> Statement {
        """
        SELECT s.realm_id, s.notice_id, s.target_id, s.way, s.is_digest, s.due_at, s.next_at, s.attempts, s.last_error,
            s.message_id
        FROM (SELECT DISTINCT id FROM unnest(\(realms)) AS r(id)) r CROSS JOIN LATERAL (
            SELECT * FROM delivery.shipment
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id AND state = 'waiting'
            ORDER BY next_at LIMIT \(rowsMax)
        ) s
        """
    }

    /// The devices of people whose credential is not revoked. Rows: realm, digest.
    static func activeDevices(in realms: [Int32], of environment: EnvironmentID) -> Statement {
        """
        SELECT realm_id, token FROM delivery.active_device
        WHERE environment_id = \(environment.rawValue) AND realm_id = ANY (\(realms))
        """
    }

    static func read(_ rows: Rows) throws(PostgresError) -> [Int32: [ShipmentRow]] {
        var rowsByRealm: [Int32: [ShipmentRow]] = [:]
        for row in rows {
            var columns = row.columns
            let realm: Int32 = try columns.next()
            let (notice, target): (UUID, UUID) = (try columns.next(), try columns.next())
            guard let channel = Channel(rawValue: try columns.next()) else { continue }
            var waiting = ShipmentRow(
                notice: notice, target: target, channel: channel, isDigest: try columns.next(),
                dueAt: try columns.next(), nextAt: try columns.next())
            waiting.attempts = Int(try columns.next(Int32.self))
            waiting.lastError = try columns.next()
            waiting.message = try columns.next()
            rowsByRealm[realm, default: []].append(waiting)
        }
        return rowsByRealm
    }

    /// A new row.
    struct Insertion {
        let realm: Int32
        let row: ShipmentRow
        let decision: Int
    }

    /// Inserts rows, except those that exist in any state.
    static func insert(_ new: [Insertion], in environment: EnvironmentID) -> Statement {
        """
        INSERT INTO delivery.shipment (environment_id, realm_id, notice_id, target_id, way, is_digest, due_at, next_at)
        SELECT \(environment.rawValue), i.realm_id, i.notice_id, i.target_id, i.way, i.is_digest, i.due_at, i.due_at
        FROM unnest(\(new.map(\.realm)), \(new.map(\.row.notice)), \(new.map(\.row.target)),
            \(new.map(\.row.channel.rawValue)), \(new.map(\.row.isDigest)), \(new.map(\.row.dueAt)),
            \(new.map { Int32($0.decision) }))
            AS i(realm_id, notice_id, target_id, way, is_digest, due_at, decision)
        WHERE i.decision <> ALL ((SELECT realm.missed())::int[])
        ORDER BY i.realm_id, i.notice_id, i.target_id ON CONFLICT DO NOTHING
        """
    }

    /// Drops the waiting rows of these notices.
    static func drop(
        _ notices: [(key: ObjectKey, decision: Int)], at now: Timestamp, in environment: EnvironmentID
    ) -> Statement {
        """
        UPDATE delivery.shipment s SET state = 'dropped', ended_at = \(now)
        FROM unnest(\(notices.map(\.key.realm)), \(notices.map(\.key.id)), \(notices.map { Int32($0.decision) }))
            AS i(realm_id, notice_id, decision)
        WHERE s.environment_id = \(environment.rawValue) AND s.realm_id = i.realm_id AND s.notice_id = i.notice_id
            AND s.state = 'waiting' AND i.decision <> ALL ((SELECT realm.missed())::int[])
        """
    }

    /// Saves the changes of a person's rows. A row that is not waiting stays unchanged.
    static func save(
        _ changes: [RowChange], of realm: Int32, at now: Timestamp, in environment: EnvironmentID, decision: Int
    ) -> Statement {
        var messages = BinaryArray(of: UUID.self)
        for change in changes { messages.append(change.row.message) }
        return """
            UPDATE delivery.shipment s
            SET state = i.state, next_at = i.next_at, attempts = i.attempts, last_error = nullif(i.last_error, ''),
                message_id = i.message_id, ended_at = CASE WHEN i.state <> 'waiting' THEN \(now) END
            FROM unnest(\(changes.map(\.row.notice)), \(changes.map(\.row.target)), \(changes.map(\.state.rawValue)),
                \(changes.map(\.row.nextAt)), \(changes.map { Int32($0.row.attempts) }),
                \(changes.map { ($0.row.lastError ?? "").prefix(scalars: errorLengthMax) }), \(messages))
                AS i(notice_id, target_id, state, next_at, attempts, last_error, message_id)
            WHERE s.environment_id = \(environment.rawValue) AND s.realm_id = \(realm) AND s.notice_id = i.notice_id
                AND s.target_id = i.target_id AND s.state = 'waiting'
                AND \(Int32(decision)) <> ALL ((SELECT realm.missed())::int[])
            """
    }

    private static let errorLengthMax = 500

    /// Requests the processing of people's choices, after their rows were inserted or a device was revoked.
    static func cascade(
        to choices: [(subject: EventSubject, decision: Int)], reason: String = "a notice is due",
        in environment: EnvironmentID
    ) -> Statement {
        Cascade.due(
            group: Services.noticeDeliverer.name, topic: Topics.notice, in: environment,
            """
            SELECT i.key, i.id, \(reason)::text, i.decision
            FROM unnest(\(choices.map(\.subject.description)), \(choices.map(\.subject.id)),
                \(choices.map { Int32($0.decision) })) AS i(key, id, decision)
            """)
    }

    // MARK: All environments

    /// The age of the oldest due row, in seconds, by channel. Rows: channel, seconds.
    static let oldest: Statement = """
        SELECT w.way, coalesce((
            SELECT greatest(extract(epoch FROM now() - min(due_at)), 0)::float8 FROM delivery.shipment s
            WHERE s.state = 'waiting' AND s.way = w.way AND s.due_at <= now()), 0)
        FROM unnest(\(Channel.allCases.map(\.rawValue))) AS w(way)
        """

    /// The last row of a page of `delivery.device`.
    struct DevicePosition {
        var environment = Int32.min
        var realm = Int32.min
        var token = Bytea([])
    }

    /// The next page of registered devices. Rows: environment, realm, digest; the path of the realm and the choice's id
    /// if the device's credential is revoked and the choice is not queued yet, otherwise null.
    static func devices(after last: DevicePosition, countMax: Int64) -> Statement {
        """
        SELECT d.environment_id, d.realm_id, d.token, r.path, CASE WHEN r.path IS NOT NULL THEN d.choice_id END
        FROM (
            SELECT * FROM delivery.device
            WHERE (environment_id, realm_id, token) > (\(last.environment), \(last.realm), \(last.token))
            ORDER BY environment_id, realm_id, token LIMIT \(countMax)
        ) d LEFT JOIN realm.realm r ON r.environment_id = d.environment_id AND r.id = d.realm_id
            AND NOT EXISTS (
                SELECT FROM delivery.active_device a
                WHERE a.environment_id = d.environment_id AND a.realm_id = d.realm_id AND a.token = d.token)
            AND NOT EXISTS (
                SELECT FROM pipeline.parked p
                WHERE p.group_name = \(Services.noticeDeliverer.name) AND p.environment_id = d.environment_id
                    AND p.key = r.path || '/' || \(Kind.deliveryChoice.rawValue) || '/' || d.choice_id::text)
        ORDER BY d.environment_id, d.realm_id, d.token
        """
    }

    /// Removes rows that ended long ago, up to a limit.
    static func removeOld(_ retention: Duration, countMax: Int64) -> Statement {
        """
        DELETE FROM delivery.shipment WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM delivery.shipment
            WHERE ended_at IS NOT NULL AND ended_at < now() - make_interval(secs => \(retention.inSeconds))
            ORDER BY ended_at LIMIT \(countMax)))
        """
    }
}

import FoundationEssentials
import Kafka
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// An environment with something to publish.
struct RelayTask {
    let environment: EnvironmentID
    let generation: Int64
    let counterPosition: Int64
    let relayedPosition: Int64
    let epoch: Int64
    let isRepublishing: Bool
    /// A topic that is to be published again beside what changes.
    var again: Republish.Request?
}

/// The SQL of `realm.relay` and `realm.relay_offset`.
enum RelayStore {
    /// One session holds it: the active relay.
    static let lockKey: Int64 = 0x6669_656c_6472_6c79

    static func tryLock() -> Statement { "SELECT pg_try_advisory_lock(\(lockKey))" }

    /// Gives a new environment its row, and has everything published again of one with another generation: in the same
    /// epoch, since Kafka has lost nothing, and nobody else's messages are to be read again for it. A new one that is
    /// not in its first generation came from elsewhere: its objects have no change log here.
    static let prepare: [Statement] = [
        """
        INSERT INTO realm.relay (environment_id, generation, epoch, published_epoch, position)
        SELECT e.id, e.generation, m.epoch, m.epoch - CASE WHEN e.generation > 1 THEN 1 ELSE 0 END, 0
        FROM realm.environment e, (SELECT coalesce(max(epoch), 1) AS epoch FROM realm.relay) m
        WHERE \(EnvironmentCounter.works) AND NOT EXISTS (SELECT FROM realm.relay r WHERE r.environment_id = e.id)
        ON CONFLICT DO NOTHING
        """,
        """
        UPDATE realm.relay r SET generation = e.generation, published_epoch = r.epoch - 1
        FROM realm.environment e WHERE e.id = r.environment_id AND e.generation <> r.generation
        """,
    ]

    /// Environments with news, found by one join. Rows: as `tasks` reads them.
    ///
    /// - Parameter topics: Those that cannot be written now: they are not published again yet.
    static func news(except topics: [String]) -> Statement {
        """
        SELECT e.id, e.generation, e.position, coalesce(r.position, -1), coalesce(r.epoch, 0),
            coalesce(r.published_epoch < r.epoch, false), r.generation IS DISTINCT FROM e.generation, a.topic, a.number
        FROM realm.environment e LEFT JOIN realm.relay r ON r.environment_id = e.id
            LEFT JOIN (SELECT DISTINCT ON (environment_id) environment_id, topic, number FROM realm.republish
                WHERE topic <> ALL (\(topics)) ORDER BY environment_id, number) a ON a.environment_id = e.id
        WHERE \(EnvironmentCounter.works) AND (r.position IS NULL OR r.position < e.position
            OR r.published_epoch < r.epoch OR r.generation <> e.generation OR a.topic IS NOT NULL)
        ORDER BY e.id
        """
    }

    /// - Returns: The work, and the environments that need `prepare` first.
    static func tasks(_ rows: Rows) throws(PostgresError) -> (tasks: [RelayTask], unprepared: Set<EnvironmentID>) {
        var tasks: [RelayTask] = []
        var unprepared: Set<EnvironmentID> = []
        for row in rows {
            if let task = try RelayTask(row) { tasks.append(task) } else { unprepared.insert(try row.value(0)) }
        }
        return (tasks, unprepared)
    }

    /// Routed objects in key order, tombstones included.
    /// Rows: position, realm_id, kind, id, edit_position, fields.
    static func objects(
        in environment: EnvironmentID, kinds: [Kind], after key: RelayProgress.ObjectPlace, countMax: Int
    ) -> Statement {
        """
        SELECT position, realm_id, kind, id, edit_position, fields FROM store.object
        WHERE environment_id = \(environment.rawValue)
            AND (realm_id, kind, id) > (\(key.realm), \(key.kind), \(key.id))
            AND kind = ANY (\(kinds))
        ORDER BY realm_id, kind, id LIMIT \(Int64(countMax))
        """
    }

    /// Moves on only from where this relay found it: another one that took over has the word, and what was published of
    /// a former generation says nothing of this one.
    static func store(_ confirmed: RelayProgress.Confirmed) -> Statement {
        let environment = confirmed.environment.rawValue
        if confirmed.isRepublished {
            return """
                UPDATE realm.relay SET position = \(confirmed.to), published_epoch = epoch
                WHERE environment_id = \(environment) AND epoch = \(confirmed.epoch)
                    AND generation = \(confirmed.generation)
                """
        }
        return """
            UPDATE realm.relay SET position = \(confirmed.to)
            WHERE environment_id = \(environment) AND position = \(confirmed.from) AND epoch = \(confirmed.epoch)
                AND generation = \(confirmed.generation)
            """
    }

    static func store(_ offsets: [TopicPartition: Int64]) -> Statement {
        let ordered = offsets.sorted { ($0.key.topic, $0.key.partition) < ($1.key.topic, $1.key.partition) }
        return """
            INSERT INTO realm.relay_offset AS o (topic, partition, last_offset)
            SELECT * FROM unnest(\(ordered.map(\.key.topic)), \(ordered.map(\.key.partition)), \(ordered.map(\.value)))
            ON CONFLICT (topic, partition) DO UPDATE SET last_offset = greatest(o.last_offset, excluded.last_offset)
            """
    }

    static let offsets: Statement = "SELECT topic, partition, last_offset FROM realm.relay_offset"

    /// The broker's content was lost: every environment is published again, in a new epoch, and what was missed of the
    /// lost content is in it.
    static let newEpoch: [Statement] = [
        Republish.lock,
        "UPDATE realm.relay SET epoch = (SELECT max(epoch) + 1 FROM realm.relay)",
        "DELETE FROM realm.relay_offset",
        "DELETE FROM realm.republish",
        "DELETE FROM pipeline.missed",
    ]
}

extension RelayTask {
    /// Reads a row of ``RelayStore/news(except:)``.
    ///
    /// - Returns: `nil` when the environment needs ``RelayStore/prepare`` first.
    fileprivate init?(_ row: Row) throws(PostgresError) {
        var columns = row.columns
        environment = try columns.next()
        generation = try columns.next()
        counterPosition = try columns.next()
        relayedPosition = try columns.next()
        epoch = try columns.next()
        isRepublishing = try columns.next()
        let needsPreparing: Bool = try columns.next()
        let (topic, number): (String?, Int64?) = (try columns.next(), try columns.next())
        try columns.end()
        if needsPreparing { return nil }
        if let topic, let number { again = Republish.Request(topic: topic, number: number) }
    }
}

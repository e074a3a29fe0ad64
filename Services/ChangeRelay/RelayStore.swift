import FoundationEssentials
import Kafka
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// An environment with changes to publish.
struct RelayTask {
    let environment: EnvironmentID
    let generation: Int64
    let counterPosition: Int64
    let relayedPosition: Int64
    let epoch: Int64
    let isRepublishing: Bool
    /// A topic to republish alongside changes.
    var republish: Republish.Request?
}

/// The SQL of `realm.relay` and `realm.relay_offset`.
enum RelayStore {
    /// The key of the leader's advisory lock.
    static let lockKey: Int64 = 0x6669_656c_6472_6c79

    static func tryLock() -> Statement { "SELECT pg_try_advisory_lock(\(lockKey))" }

    /// Creates the row of a new environment, and starts a republication of an environment with a new generation. The
    /// epoch stays the same, because Kafka has lost nothing and consumers need not reread other environments. A new
    /// environment that is not in its first generation was moved here: its objects have no change log.
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

    /// Reads the environments with changes by one join. Rows: see `tasks`.
    ///
    /// - Parameter topics: Topics that cannot be written at present, whose republication waits.
    static func pendingEnvironments(except topics: [String]) -> Statement {
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

    /// - Returns: The tasks, and the environments that need `prepare` first.
    static func tasks(_ rows: Rows) throws(PostgresError) -> (tasks: [RelayTask], unprepared: Set<EnvironmentID>) {
        var tasks: [RelayTask] = []
        var unprepared: Set<EnvironmentID> = []
        for (environment, generation, counter, relayed, epoch, isRepublishing, needsPreparing, topic, number)
            in try rows.decode(
                EnvironmentID.self, Int64.self, Int64.self, Int64.self, Int64.self, Bool.self, Bool.self, String?.self,
                Int64?.self)
        {
            guard !needsPreparing else {
                unprepared.insert(environment)
                continue
            }
            var task = RelayTask(
                environment: environment, generation: generation, counterPosition: counter, relayedPosition: relayed,
                epoch: epoch, isRepublishing: isRepublishing)
            if let topic, let number { task.republish = Republish.Request(topic: topic, number: number) }
            tasks.append(task)
        }
        return (tasks, unprepared)
    }

    /// Reads the published kinds that an environment declares. Rows: kind, name, topic.
    static func ownKinds(in environment: EnvironmentID) -> Statement {
        """
        SELECT o.kind, k.name, o.topic FROM realm.own_kind o JOIN realm.kind k ON k.number = o.kind
        WHERE o.environment_id = \(environment.rawValue) AND o.topic IS NOT NULL
        """
    }

    /// Reads objects of published kinds in key order, including tombstones. Rows: position, realm_id, kind, id,
    /// edit_position, fields.
    ///
    /// - Parameters:
    ///   - kinds: The built-in kinds.
    ///   - topic: The topic of other kinds; `nil`: any.
    static func objects(
        in environment: EnvironmentID, kinds: [Kind], topic: String?, after key: RelayProgress.ObjectCursor,
        countMax: Int
    ) -> Statement {
        """
        SELECT position, realm_id, kind, id, edit_position, fields FROM store.object
        WHERE environment_id = \(environment.rawValue)
            AND (realm_id, kind, id) > (\(key.realm), \(key.kind), \(key.id))
            AND (kind = ANY (\(kinds)) OR kind IN (
                SELECT kind FROM realm.own_kind WHERE environment_id = \(environment.rawValue)
                    AND topic = coalesce(\(topic), topic)))
        ORDER BY realm_id, kind, id LIMIT \(Int64(countMax))
        """
    }

    /// Stores a position only if the previous one is unchanged (compare-and-set): otherwise another relay has taken
    /// over, or the generation has changed.
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

    /// Starts a new epoch after the broker lost its content: all environments are republished. Pending
    /// republications and the records of missed messages (`pipeline.missed`) are therefore deleted.
    static let newEpoch: [Statement] = [
        Republish.lock, "UPDATE realm.relay SET epoch = (SELECT max(epoch) + 1 FROM realm.relay)",
        "DELETE FROM realm.relay_offset", "DELETE FROM realm.republish", "DELETE FROM pipeline.missed",
    ]
}

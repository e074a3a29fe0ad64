import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// The SQL of `defect.command`: the order of people's commands, which the database maintains.
enum CommandOrderStore {
    /// Limit on ended commands of one person. The newest are retained.
    static let endedMax = 200
    /// Limit on those among them that only read, whose results are large.
    static let endedReadsMax = 50
    /// Limit on ended commands removed at a time.
    static let removedMax = 500
    /// Idle time after which a blocking command is re-queued.
    static let idleMax = Duration.seconds(300)
    /// Limit on the compared characters of a record's id.
    private static let recordLengthMax = 255

    /// A record of a person's commands.
    struct RecordKey: Hashable {
        let realm: Int32
        let record: String

        init(_ realm: Int32, _ record: String) {
            self.realm = realm
            self.record = record.prefix(scalars: recordLengthMax)
        }
    }

    /// The submit position of the first waiting command for each record. Rows: realm, record, position.
    static func first(at recordKeys: [RecordKey], in environment: EnvironmentID) -> Statement {
        """
        SELECT i.realm_id, i.record, c.edit_position
        FROM unnest(\(recordKeys.map(\.realm)), \(recordKeys.map(\.record))) AS i(realm_id, record) CROSS JOIN LATERAL (
            SELECT edit_position FROM defect.command
            WHERE environment_id = \(environment) AND realm_id = i.realm_id AND record = i.record AND is_waiting
            ORDER BY edit_position LIMIT 1
        ) c
        """
    }

    /// Ended commands above the limits. Rows: realm, command.
    static func surplus(in realms: [Int32], of environment: EnvironmentID) -> Statement {
        """
        SELECT i.id, c.command_id FROM unnest(\(realms)) AS i(id) CROSS JOIN LATERAL (
            (SELECT command_id FROM defect.command
            WHERE environment_id = \(environment) AND realm_id = i.id AND NOT is_waiting
            ORDER BY edit_position DESC OFFSET \(Int64(endedMax)) LIMIT \(Int64(removedMax)))
            UNION
            (SELECT command_id FROM defect.command
            WHERE environment_id = \(environment) AND realm_id = i.id AND NOT is_waiting AND is_reading
            ORDER BY edit_position DESC OFFSET \(Int64(endedReadsMax)) LIMIT \(Int64(removedMax)))
        ) c
        """
    }

    /// Re-queues blocking commands that have been idle for `idleMax`, because an operator has discarded their key. A
    /// deferred key is not re-queued: it has its own retry.
    ///
    /// - Parameters:
    ///   - targets: The records by their ids in the ledger.
    ///   - recordKeys: The same records by their names.
    ///   - waiting: The waiting commands.
    static func requeueAbandoned(
        _ targets: [UUID], _ recordKeys: [RecordKey], for waiting: [UUID], in environment: EnvironmentID
    ) -> Statement {
        let group = Services.defectSubmitter.name
        return Cascade.due(
            group: group, topic: Topics.defect, in: environment,
            """
            SELECT k.key, k.command_id, 'another command waits for it', -1
            FROM (
                SELECT a.realm_id, a.command_id FROM unnest(\(targets)) AS i(target_id) CROSS JOIN LATERAL (
                    SELECT realm_id, command_id FROM defect.attempt
                    WHERE environment_id = \(environment) AND target_id = i.target_id
                        AND lease_until < now() - make_interval(secs => \(idleMax.inSeconds))
                    OFFSET 0
                ) a
                UNION
                SELECT i.realm_id, c.command_id
                FROM unnest(\(recordKeys.map(\.realm)), \(recordKeys.map(\.record))) AS i(realm_id, record)
                CROSS JOIN LATERAL (
                    SELECT command_id, handed_in_at FROM defect.command
                    WHERE environment_id = \(environment) AND realm_id = i.realm_id AND record = i.record AND is_waiting
                    ORDER BY edit_position LIMIT 1
                ) c
                WHERE c.handed_in_at < now() - make_interval(secs => \(idleMax.inSeconds))
            ) b
            CROSS JOIN LATERAL (
                SELECT r.path || '/' || \(Kind.defectCommand.rawValue) || '/' || b.command_id AS key, b.command_id
                FROM realm.realm r WHERE r.environment_id = \(environment) AND r.id = b.realm_id
            ) k
            WHERE k.command_id <> ALL (\(waiting)) AND NOT EXISTS (
                SELECT FROM pipeline.parked p
                WHERE p.group_name = \(group) AND p.environment_id = \(environment) AND p.key = k.key)
            """)
    }
}

import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// The SQL of `defect.command`: the order of people's commands, which the database keeps as they are written.
enum OrderStore {
    /// Commands of one person that stay when they are at their end, the newest.
    static let endedMax = 200
    /// Of what is more, so much goes at a time.
    static let removedMax = 500
    /// A command that others wait for, and that nobody has looked after for so long, is looked at again.
    static let idleMax = Duration.seconds(300)
    /// Characters of a record's id that count.
    private static let recordLengthMax = 255

    /// A record that a person's commands are about.
    struct Place: Hashable {
        let realm: Int32
        let record: String

        init(_ realm: Int32, _ record: String) {
            self.realm = realm
            self.record = record.prefix(scalars: recordLengthMax)
        }
    }

    /// Where the first command about each place was handed in that is not done. Rows: realm, record, position.
    static func first(at places: [Place], in environment: EnvironmentID) -> Statement {
        """
        SELECT i.realm_id, i.record, c.edit_position
        FROM unnest(\(places.map(\.realm)), \(places.map(\.record))) AS i(realm_id, record) CROSS JOIN LATERAL (
            SELECT edit_position FROM defect.command
            WHERE environment_id = \(environment) AND realm_id = i.realm_id AND record = i.record AND is_waiting
            ORDER BY edit_position LIMIT 1
        ) c
        """
    }

    /// Commands at their end that are more than people keep. Rows: realm, command.
    static func surplus(in realms: [Int32], of environment: EnvironmentID) -> Statement {
        """
        SELECT i.id, c.command_id FROM unnest(\(realms)) AS i(id) CROSS JOIN LATERAL (
            SELECT command_id FROM defect.command
            WHERE environment_id = \(environment) AND realm_id = i.id AND NOT is_waiting
            ORDER BY edit_position DESC OFFSET \(Int64(endedMax)) LIMIT \(Int64(removedMax))
        ) c
        """
    }

    /// Has commands that others wait for be decided anew when nobody has looked after them for long: an operator has
    /// discarded their key. One that is parked comes back by itself.
    ///
    /// - Parameters:
    ///   - targets: The records, as the ledger calls them.
    ///   - places: The same as their people call them.
    ///   - waiting: Those that wait.
    static func wake(
        _ targets: [UUID], _ places: [Place], for waiting: [UUID], in environment: EnvironmentID
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
                FROM unnest(\(places.map(\.realm)), \(places.map(\.record))) AS i(realm_id, record)
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

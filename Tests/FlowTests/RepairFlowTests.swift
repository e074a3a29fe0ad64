import Essentials
import Foundation
import LocalCluster
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

extension FlowTests {
    /// Manual SQL in the database of a running installation: `fieldpost check` finds all inconsistencies, and
    /// `fieldpost repair` lets the responsible services fix them.
    struct RepairFlowTests {
        private static let options = {
            var options = LocalCluster.Options.quick
            options.services += [.poller, .defectNotifier, .defectSubmitter]
            options.emulators.append(.compass)
            return options
        }()

        @Test(.timeLimit(.minutes(20))) func repairFixesManualCorruption() async throws {
            try await withCluster("repair", Self.options) { cluster in
                let arguments = ["--people", "6", "--compass", cluster.compassURL]
                let demo = try cluster.startDemo(arguments)
                // While all services work, temporary differences are not reported, or marked.
                while demo.isRunning {
                    let busy = try Self.inconsistencies(await Self.run(["check", "--json", "--settle", "30"], cluster))
                    #expect(busy.allSatisfy { $0.pending != nil }, "\(busy)")
                }
                try await demo.expectNoDifferences()
                let clean = try await Self.run(["check"], cluster)
                #expect(clean.status == 0 && clean.output.contains("no inconsistencies"), "\(clean)")

                try await onOwnThread { try Planting(cluster).all() }
                let spoiled = try await Self.run(["check", "--json"], cluster)
                #expect(spoiled.status == 1)
                let shown = try Self.inconsistencies(spoiled)
                let parts = Set(shown.map(\.part))
                #expect(parts == Planting.parts, "\(shown)")
                #expect(shown.allSatisfy { $0.pending == nil }, "\(shown)")

                let dry = try await Self.run(["repair", "--dry-run"], cluster)
                #expect(dry.status == 1 && dry.output.contains("nothing was changed"), "\(dry)")
                #expect(try Self.inconsistencies(await Self.run(["check", "--json"], cluster)) == shown)

                let repaired = try await Self.run(["repair", "--yes", "--wait", "240"], cluster)
                #expect(repaired.status == 0 && repaired.output.contains("\(shown.count) repaired"), "\(repaired)")
                print(repaired.output)
                let after = try await Self.run(["check"], cluster)
                #expect(after.status == 0 && after.output.contains("no inconsistencies"), "\(after)")
                let audited = try await Self.run(["audit", "list", "--json"], cluster)
                for row in Set(shown.map(\.key)) { #expect(audited.output.contains(row), "\(row)") }
                // New devices of the same people find all as it was, and as it is in the back end.
                try await cluster.startDemo(arguments).expectNoDifferences()
            }
        }

        private struct ReportedInconsistency: Decodable, Hashable {
            let part: String
            let key: String
            let fault: String
            let pending: String?

            private enum CodingKeys: String, CodingKey {
                case key, fault, pending
                case part = "check"
            }
        }

        private static func inconsistencies(_ response: CommandResult) throws -> [ReportedInconsistency] {
            struct Outcome: Decodable { let inconsistencies: [ReportedInconsistency] }
            return try JSONDecoder().decode(Outcome.self, from: Data(response.output.utf8)).inconsistencies
        }

        private static func run(_ arguments: [String], _ cluster: LocalCluster) async throws -> CommandResult {
            let variables = [
                "FIELDPOST_DATABASE_URL": cluster.conninfo, "FIELDPOST_KAFKA_BROKERS": cluster.brokers,
            ]
            return try await onOwnThread { try fieldpost(arguments, environment: variables) }
        }
    }
}

/// Faults of many sorts, one of each.
private struct Planting: ~Copyable {
    /// Those that it plants, as `--only` names them.
    static let parts: Set = [
        "tasks", "positions", "shares", "memberships", "catalogues", "statuses", "submissions", "defects", "images",
        "changes", "parked",
    ]

    private var connection: Connection
    private let environment: EnvironmentID

    init(_ cluster: LocalCluster) throws {
        var connection = try Connection(cluster.conninfo)
        environment = try connection.run("SELECT id FROM realm.environment ORDER BY id LIMIT 1")[0]
            .decode(EnvironmentID.self)
        self.connection = connection
    }

    consuming func all() throws {
        try lose("FieldTask", in: "/teams/%")
        try lose("Appointment", in: "/shares/%")
        try change(
            """
            UPDATE store.object SET fields = jsonb_set(fields::jsonb, '{latitude}', '0')::text
            WHERE (realm_id, kind, id) IN (
                SELECT o.realm_id, o.kind, o.id FROM store.object o
                JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                WHERE r.path = '/manager' AND o.kind = \(Kind.location) AND NOT o.deleted
                ORDER BY o.id DESC LIMIT 1)
            """)
        try leaveMembership()
        try change(
            """
            WITH gone AS (
                DELETE FROM store.object o USING (
                    SELECT DISTINCT ON (l.fields::json->>'entry') l.realm_id, l.kind, l.id, e.id AS entry
                    FROM store.object l JOIN realm.kind k ON k.number = l.kind AND k.name = 'TimeEntryStatus'
                    JOIN realm.kind n ON n.name = 'TimeEntry'
                    JOIN store.object e ON e.environment_id = l.environment_id AND e.realm_id = l.realm_id
                        AND e.kind = n.number AND e.id = (l.fields::json->>'entry')::uuid
                        AND e.fields::json->>'status' = 'released'
                    WHERE NOT l.deleted
                    ORDER BY l.fields::json->>'entry', l.fields::json->>'timestamp' DESC LIMIT 1
                ) x WHERE o.realm_id = x.realm_id AND o.kind = x.kind AND o.id = x.id RETURNING o.id
            )
            DELETE FROM store.change c USING gone WHERE c.id = gone.id
            """)
        try loseLedger()
        try leaveMirror()
        try change(
            """
            INSERT INTO blob.reference (environment_id, realm_id, kind, blob_id, id)
            SELECT environment_id, realm_id, kind, gen_random_uuid(), id FROM store.object
            WHERE kind = \(Kind.fieldTask) AND NOT deleted LIMIT 1
            """)
        try change(
            """
            DELETE FROM store.change c USING store.object o
            WHERE o.kind = \(Kind.person) AND c.environment_id = o.environment_id AND c.position = o.position
                AND c.id = o.id AND o.id = (SELECT min(id::text)::uuid FROM store.object WHERE kind = \(Kind.person))
            """)
        let key = "/manager/FieldTask/\(UUID().text)"
        try change(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('task-fan-out', \(environment.rawValue), \(key), 'task.events', 0, \(key), 0, 'why', true, false,
                9, now() + interval '1 hour')
            """)
    }

    private mutating func change(_ statement: Statement) throws {
        let count = try connection.run(statement).affectedCount
        #expect(count == 1, "\(count): \(statement)")
    }

    /// Deletes an object and its pointer.
    ///
    /// - Parameter id: `nil`: any.
    private mutating func lose(_ kind: String, in paths: String, named id: UUID? = nil) throws {
        try change(
            """
            WITH gone AS (
                DELETE FROM store.object o USING (
                    SELECT o.realm_id, o.kind, o.id FROM store.object o
                    JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                    JOIN realm.kind k ON k.number = o.kind
                    WHERE r.path LIKE \(paths) AND k.name = \(kind) AND NOT o.deleted
                        AND o.id = coalesce(\(id), o.id) LIMIT 1
                ) x WHERE o.realm_id = x.realm_id AND o.kind = x.kind AND o.id = x.id
                RETURNING o.environment_id, o.position, o.id
            )
            DELETE FROM store.change c USING gone g
            WHERE c.environment_id = g.environment_id AND c.position = g.position AND c.id = g.id
            """)
    }

    /// The ledger of a submitted entry and its person's choices are lost.
    private mutating func loseLedger() throws {
        let row = try connection.run(
            """
            SELECT l.entry_id, u.fields::json->>'catalogue', e.fields::json->'reporting'->0->>'node'
            FROM submission.ledger l
            JOIN store.object e ON e.environment_id = l.environment_id AND e.realm_id = l.realm_id
                AND e.id = l.entry_id AND NOT e.deleted
            JOIN store.object u ON u.environment_id = l.environment_id AND u.realm_id = l.realm_id
                AND u.kind = \(Kind.user) AND NOT u.deleted
            WHERE e.fields::json->>'status' = 'released' AND e.fields::json->>'submitRequested' = 'true'
            ORDER BY l.entry_id DESC LIMIT 1
            """)[0]
        let (entry, catalogue, node) = try row.decode(UUID.self, String.self, String.self)
        try change("DELETE FROM submission.ledger WHERE entry_id = \(entry)")
        try lose("ReportingTreeNode", in: "/catalogues/\(catalogue)", named: UUID(uuidString: node))
    }

    /// A mirror of a defect that does not exist, and is in no index.
    private mutating func leaveMirror() throws {
        let realm = try connection.run(
            """
            SELECT realm_id FROM store.object
            WHERE environment_id = \(environment.rawValue) AND kind = \(Kind.defect) AND NOT deleted LIMIT 1
            """)[0].decode(Int32.self)
        var batch = WriteBatch(environment: environment)
        batch.put(
            ObjectKey(realm: realm, kind: .defect, id: UUID()), try CanonicalJSON(#"{"record":"none"}"#), decision: 0)
        _ = try batch.commit(on: &connection)
    }

    /// A person is in a team that was deleted. Without events: `task-fan-out` would remove the membership by itself.
    private mutating func leaveMembership() throws {
        var directory = RealmDirectory()
        let common = try #require(
            try directory.id(of: .common, in: environment, create: false, on: &connection))
        let person = try connection.run(
            """
            SELECT id FROM store.object
            WHERE kind = \(Kind.person) AND realm_id = \(common) AND NOT deleted ORDER BY id LIMIT 1
            """)[0].decode(UUID.self)
        let team = UUID()
        let fields = "{\"person\":\"\(person.text)\",\"team\":\"\(team.text)\"}"
        for (kind, id, fields) in [
            (Kind.team, team, nil), (.membership, Membership.id(of: person, in: team), fields),
        ] as [(Kind, UUID, String?)] {
            try change(
                """
                INSERT INTO store.object (environment_id, realm_id, kind, deleted, id, position, source_position,
                    edit_position, fields)
                VALUES (\(environment.rawValue), \(common), \(kind), \(fields == nil), \(id), 0, 0, 0, \(fields))
                """)
        }
    }
}

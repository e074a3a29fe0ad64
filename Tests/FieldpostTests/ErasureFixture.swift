import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

/// An environment with rows of Ana in every table, and of Bo. Ana's texts contain `anasecret`. Bo uploaded her picture.
struct ErasureFixture {
    static let email = "ana@example.com"
    /// An entry whose submission has no known outcome.
    static let unfinished = UUID()
    let conninfo: String
    let ana = UUID()
    let bo = UUID()
    let team = UUID()
    let task = UUID()
    private let entry = UUID()
    private let note = UUID()
    private let poll = UUID()
    private let avatar = UUID()
    private let shown = UUID()
    /// The image of a note that Ana wrote.
    private let noted = UUID()
    /// A document that an integration uploaded for an object of an own kind.
    private let receipt = UUID()
    private let client = UUID()

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        try EnvironmentRows(
            id: 1, provider: .init(issuer: "http://idp"), domains: ["example.com"], backend: .init(),
            people: [Self.email: ["employee": "anasecret"], "bo@example.com": ["employee": "2"]]
        ).insert(on: &connection)
        try connection.run(peopleAndRealms)
        try insertObjects(on: &connection)
        try connection.run(deviceRows + backEndRows + otherRows)
    }

    /// Runs `fieldpost environment …`.
    func run(_ arguments: String...) throws -> CommandResult {
        try fieldpost(["environment"] + arguments, environment: ["FIELDPOST_DATABASE_URL": conninfo])
    }

    // MARK: Reading

    /// The tables with a text in any column, in upper or lower case, or with its bytes.
    func tables(with text: String) throws -> [String] {
        var connection = try Connection(conninfo)
        let hex = text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        var found: [String] = []
        for table in try Self.tables(on: &connection) {
            let name = Statement(stringLiteral: table)
            let rows = try connection.run(
                """
                SELECT count(*) FROM \(name) t
                WHERE strpos(lower(to_jsonb(t)::text), \(text)) > 0 OR strpos(to_jsonb(t)::text, \(hex)) > 0
                """)
            if try rows[0].decode(Int64.self) > 0 { found.append(table) }
        }
        return found
    }

    /// The tables with a row of Ana's own realms.
    func tablesOfOwnRealms() throws -> [String] {
        var connection = try Connection(conninfo)
        let tables = try connection.run(
            """
            SELECT c.table_schema || '.' || c.table_name FROM information_schema.columns c
            JOIN information_schema.tables t USING (table_schema, table_name)
            WHERE t.table_type = 'BASE TABLE' AND c.column_name = 'realm_id' ORDER BY 1
            """
        ).decode(String.self)
        return try tables.filter { table in
            let name = Statement(stringLiteral: table)
            let rows = try connection.run("SELECT count(*) FROM \(name) WHERE realm_id = ANY (\([Int32(11), 13]))")
            return try rows[0].decode(Int64.self) > 0
        }
    }

    /// The rows of all tables as text.
    func content() throws -> [String] {
        var connection = try Connection(conninfo)
        var content: [String] = []
        for table in try Self.tables(on: &connection) {
            let name = Statement(stringLiteral: table)
            let rows = try connection.run(
                "SELECT coalesce(string_agg(t::text, ',' ORDER BY t::text), '') FROM \(name) t")
            content.append(try rows[0].decode(String.self))
        }
        return content
    }

    static func tables(on connection: inout Connection) throws -> [String] {
        try connection.run(
            """
            SELECT table_schema || '.' || table_name FROM information_schema.tables
            WHERE table_type = 'BASE TABLE' AND table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1
            """
        ).decode(String.self)
    }

    /// The fields of the objects of a kind in a realm.
    func objects(_ kind: Kind, _ realm: Int32) throws -> [String] {
        var connection = try Connection(conninfo)
        return try connection.run(
            "SELECT fields FROM store.object WHERE realm_id = \(realm) AND kind = \(kind) AND NOT deleted ORDER BY id"
        ).decode(String.self)
    }

    // MARK: Rows

    private var peopleAndRealms: [Statement] {
        let share = RealmPath.share(Share.id(of: ana, with: bo)).description
        let paths = [
            "/users/ana@example.com", "/users/bo@example.com", "/seen/ana@example.com", "/common", "/users", "/manager",
            "/teams/\(team.text)", "/polls", share, "/sent/ana@example.com",
        ]
        return [
            """
            INSERT INTO access.person (environment_id, id, email, object_id, name, issuer, subject, bound_at)
            VALUES (1, 70, \(Self.email), \(ana), 'anasecret', 'http://idp', 'anasecret', now()),
                (1, 71, 'bo@example.com', \(bo), 'Bo', 'http://idp', '71', now())
            """,
            """
            INSERT INTO realm.realm (environment_id, id, path)
            SELECT 1, 10 + n, path FROM unnest(\(paths)) WITH ORDINALITY AS p(path, n)
            """,
            "INSERT INTO realm.kind (number, name) VALUES (\(Self.inspection), \(Self.inspection.rawValue))",
            """
            INSERT INTO realm.own_kind (environment_id, kind, image_paths)
            VALUES (1, \(Self.inspection), '{$.receipt}')
            """,
            // Everything is published.
            """
            INSERT INTO realm.relay (environment_id, generation, epoch, published_epoch, position)
            VALUES (1, 1, 1, 1, 1000000)
            """,
        ]
    }

    private static let inspection = Kind(number: 1_000, name: "Inspection")

    /// The number of objects, and the position of the last one.
    var objectCount: Int { storedObjects.count }

    /// Realms: 11 Ana's, 12 Bo's, 13 Ana's records, 14 /common, 15 /users, 16 /manager, 17 the team's, 18 /polls, 19
    /// what Ana shares with Bo, 20 Ana's write checkpoints.
    private var storedObjects: [(realm: Int32, kind: Kind, id: UUID, fields: String)] {
        let (ana, bo, team) = (ana.text, bo.text, team.text)
        let share = #"{"owner":"\#(ana)","recipient":"\#(bo)"}"#
        let ended = EndedShare.id(of: self.ana, item: entry)
        let digest = String(repeating: "ab", count: 32)
        let device = #"{"service":"apns","token":"anasecret","device":"\#(digest)"}"#
        return [
            (11, .user, UUID(), #"{"email":"ana@example.com","name":"anasecret"}"#),
            (11, .timeEntry, entry, #"{"text":"anasecret","backendId":"B-1","status":"released"}"#),
            (11, .timeEntryStatus, UUID(), #"{"entry":"\#(entry.text)","message":"anasecret"}"#),
            (11, .note, note, #"{"title":"anasecret"}"#),
            (11, .share, UUID(), share),
            (11, .fieldTask, task, #"{"title":"roof","assignee":"\#(ana)"}"#),
            (11, .location, self.ana, #"{"latitude":1,"longitude":2,"placeName":"anasecret"}"#),
            (11, .notice, UUID(), #"{"code":"defect-assigned","text":"anasecret"}"#),
            (11, .defectCommand, UUID(), #"{"record":"anasecret","submitRequested":true}"#),
            (11, Self.inspection, UUID(), #"{"site":"anasecret","receipt":"\#(receipt.text)"}"#),
            (11, .deliveryChoice, UUID(), #"{"devices":[\#(device)]}"#),
            (13, .seenRecord, entry, #"{"backendId":"B-2","text":"anasecret"}"#),
            (20, .writeCheckpoint, UUID(), #"{"number":1}"#),
            (14, .person, self.ana, #"{"name":"A","firstName":"anasecret","avatar":"\#(avatar.text)"}"#),
            (14, .personLookup, self.ana, #"{"name":"anasecret","email":"ana@example.com"}"#),
            (14, .membership, UUID(), #"{"person":"\#(ana)","team":"\#(team)"}"#),
            (14, .person, self.bo, #"{"name":"Bo","role":"worker"}"#),
            (14, .membership, UUID(), #"{"person":"\#(bo)","team":"\#(team)"}"#),
            (14, .team, self.team, #"{"name":"Roofs","image":"\#(shown.text)"}"#),
            (15, .realms, UUID(), #"{"userId":"ana@example.com","path":"/users/ana@example.com"}"#),
            (15, .realms, UUID(), #"{"userId":"bo@example.com","path":"/users/bo@example.com"}"#),
            (16, .fieldTask, task, #"{"title":"roof","assignee":"\#(ana)","completedBy":"\#(ana)"}"#),
            (16, .location, self.ana, #"{"latitude":1,"longitude":2,"placeName":"anasecret"}"#),
            (17, .fieldTask, UUID(), #"{"title":"wall","completedBy":"\#(ana)"}"#),
            (16, .taskNote, UUID(), #"{"text":"anasecret","author":"\#(ana)","image":"\#(noted.text)"}"#),
            (17, .taskNote, UUID(), #"{"text":"anasecret","author":"\#(ana)","image":"\#(noted.text)"}"#),
            (17, .taskNote, UUID(), #"{"text":"Bo's own","author":"\#(bo)"}"#),
            (18, .poll, poll, #"{"person":"ana@example.com","run":1}"#),
            (18, .defectPoll, UUID(), #"{"person":"ana@example.com","run":1}"#),
            (19, .share, UUID(), share),
            (19, .note, note, #"{"title":"anasecret"}"#),
            (12, .share, UUID(), share),
            (12, .sharedItem, UUID(), #"{"kind":"Note","recipient":"\#(ana)"}"#),
            (12, .notice, UUID(), #"{"code":"share","text":"ANA@example.com shared a note"}"#),
            (12, .note, UUID(), #"{"title":"Bo's own"}"#),
            (11, .privateProfile, self.ana, #"{"phone":"anasecret"}"#),
            (11, .deletedObject, UUID(), #"{"kind":"Note","title":"anasecret"}"#),
            (12, .deletedObject, UUID(), #"{"kind":"SharedItem","recipient":"\#(ana)"}"#),
            (12, .endedShare, ended, #"{"owner":"\#(ana)","kind":"Note","title":"anasecret"}"#),
            // As services write them: Foundation writes ids in upper case.
            (12, .notice, UUID(), #"{"about":"\#(ended.uuidString)","text":"anasecret has deleted a note"}"#),
            (12, .notice, UUID(), #"{"about":"\#(note.uuidString)","text":"anasecret shares a note with you"}"#),
        ]
    }

    private func insertObjects(on connection: inout Connection) throws {
        let objects = storedObjects
        for (index, object) in objects.enumerated() {
            let position = Int64(index + 1)
            try connection.run([
                """
                INSERT INTO store.object (environment_id, realm_id, kind, id, position, source_position, edit_position,
                    deleted, fields)
                VALUES (1, \(object.realm), \(object.kind), \(object.id), \(position), 0, \(position), false,
                    \(try CanonicalJSON(object.fields)))
                """,
                """
                INSERT INTO store.change (environment_id, realm_id, position, kind, id)
                VALUES (1, \(object.realm), \(position), \(object.kind), \(object.id))
                """,
            ])
        }
        try connection.run("UPDATE realm.environment SET position = \(Int64(objects.count)) WHERE id = 1")
    }

    private var deviceRows: [Statement] {
        [
            """
            INSERT INTO device.client (environment_id, person_id, client_id, next_sequence)
            VALUES (1, 70, \(client), 2)
            """,
            """
            INSERT INTO device.mutation (environment_id, person_id, client_id, sequence, problem)
            VALUES (1, 70, \(client), 1, '{"detail":"anasecret"}')
            """,
            """
            INSERT INTO device.task_author (environment_id, task_id, edit_position, author_id)
            VALUES (1, gen_random_uuid(), 1, \(ana))
            """,
            """
            INSERT INTO onboarding.refresh_token (environment_id, person_id, token, device_name)
            VALUES (1, 70, convert_to('anasecret', 'UTF8'), 'anasecret')
            """,
            """
            INSERT INTO onboarding.session (id, environment_id, email, realms_id, expires_at, device_address,
                device_name, wants_realm, person_id)
            VALUES ('\\x01', 1, \(Self.email), gen_random_uuid(), now(), '10.0.0.1', 'anasecret', false, 70)
            """,
            "INSERT INTO onboarding.event (session_id, position, name) VALUES ('\\x01', 1, 'anasecret')",
            "INSERT INTO onboarding.rate VALUES ('address:10.0.0.0 ana@example.com', now(), 1)",
            """
            INSERT INTO delivery.shipment (environment_id, realm_id, notice_id, target_id, way, due_at, next_at,
                last_error)
            VALUES (1, 11, gen_random_uuid(), gen_random_uuid(), 'email', now(), now(), 'anasecret')
            """,
        ]
    }

    private var backEndRows: [Statement] {
        [
            """
            INSERT INTO submission.ledger (environment_id, entry_id, version, phase, operation, edit_position,
                lease_until, backend_id, wanted, logged_at, realm_id)
            VALUES (1, \(entry), 1, 'settled', 'create', 1, now(), 'B-1', '{"text":"anasecret"}', 1, 11),
                (1, \(Self.unfinished), 1, 'unknown', 'create', 1, now(), NULL, '{"text":"anasecret"}', 1, 11)
            """,
            """
            INSERT INTO submission.attempt (environment_id, entry_id, version, realm_id, edit_position, detail)
            VALUES (1, \(entry), 1, 11, 1, 'anasecret')
            """,
            """
            INSERT INTO audience.person (environment_id, email, tree, read_at, changed_at)
            VALUES (1, \(Self.email), gen_random_uuid(), now(), now())
            """,
            """
            INSERT INTO backend.defect_account (environment_id, realm_id, user_name, secret)
            VALUES (1, 11, 'anasecret', convert_to('anasecret', 'UTF8'))
            """,
            "INSERT INTO backend.defect_login (environment_id, login, email) VALUES (1, 'anasecret', \(Self.email))",
            """
            INSERT INTO defect.attempt (environment_id, target_id, realm_id, command_id, call_id, record, lease_until)
            VALUES (1, gen_random_uuid(), 11, gen_random_uuid(), gen_random_uuid(), 'anasecret', now())
            """,
            "INSERT INTO defect.mirror (environment_id, defect_id, realm_id) VALUES (1, gen_random_uuid(), 11)",
            """
            INSERT INTO defect.own_run (environment_id, realm_id, scope, run, started_at)
            VALUES (1, 11, 'changes', 1, now())
            """,
            """
            INSERT INTO defect.own_watermark (environment_id, realm_id, tracker_id, action_timestamp)
            VALUES (1, 11, gen_random_uuid(), 'anasecret')
            """,
            "INSERT INTO poll.finished (environment_id, poll_id, run) VALUES (1, \(poll), 1)",
        ]
    }

    private var otherRows: [Statement] {
        let subject = "/users/ana@example.com/TimeEntry/\(entry.text)"
        let detail = JSONBytes(#"{"person":"\#(ana.text)","realm":"/users/Ana@example.com"}"#)
        return [
            """
            INSERT INTO blob.content (environment_id, uploader, id, type, digest, bytes)
            VALUES (1, 71, \(avatar), 'image/png', '\\x00', convert_to('anasecret', 'UTF8')),
                (1, 70, gen_random_uuid(), 'image/png', '\\x00', convert_to('anasecret', 'UTF8')),
                (1, -1, \(receipt), 'application/pdf', '\\x00', convert_to('anasecret', 'UTF8')),
                (1, 70, \(noted), 'image/png', '\\x00', convert_to('anasecret', 'UTF8')),
                (1, 70, \(shown), 'image/png', '\\x00', '\\x0102')
            """,
            """
            INSERT INTO task.copy (environment_id, task_id, version, realm_id, assignee_id, is_completed, completed_by)
            VALUES (1, \(task), 4, 11, \(ana), true, \(ana))
            """,
            """
            INSERT INTO task.note (environment_id, note_id, version, task_id, realm_id, position)
            VALUES (1, gen_random_uuid(), 1, \(task), 11, 1)
            """,
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, next_at)
            VALUES ('a', 1, \(subject), 't', 0, \(subject), 0, 'anasecret', true, false, 3, now()),
                ('b', 1, 'k', 't', 0, 'k', 0, 'not registered: ana@example.com', true, false, 3, now()),
                ('c', 1, 'k', 't', 0, 'k', 0, 'not registered: bo@example.com', true, false, 3, now())
            """,
            "INSERT INTO access.address (email, environment_id) VALUES (\(Self.email), 1)",
            """
            INSERT INTO access.audit (environment_id, actor, action, subject, detail, address)
            VALUES (1, \(Self.email), 'login.succeeded', 'phone of anasecret', '{"device":"10.0.0.1"}', '10.0.0.1'),
                (1, \(Self.email), 'share.removed', 'share', \(detail), '10.0.0.1'),
                (1, \(Self.email), 'login.bound', 'http://idp anasecret', '{}', '10.0.0.1'),
                (1, 'cli:root', 'device.revoked', \(Self.email), '{}', 'host'),
                (NULL, 'console:op', 'realm.viewed', \(subject), '{}', 'host'),
                (1, 'bo@example.com', 'login.succeeded', 'phone', '{}', '10.0.0.2')
            """,
        ]
    }
}

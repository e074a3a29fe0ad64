import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import ServiceSettings
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

/// Removal of old data, with a real database.
@Suite(.ownThreads) struct RetentionTests {
    private static let day = Duration.seconds(86_400)

    /// Runs a sweep to its end, and returns the number of removed rows.
    private static func runSweep(_ sweep: some Sweep, _ acme: inout TestEnvironment) throws -> Int {
        var sweep: any Sweep = sweep
        var count = 0
        for _ in 0..<1_000 {
            let result = try sweep.step(on: &acme.connection)
            count += result.removedCount
            if result.isLast { return count }
        }
        throw Endless()
    }

    struct Endless: Error {}

    private static func count(_ statement: Statement, _ acme: inout TestEnvironment) throws -> Int64 {
        try acme.connection.run(statement)[0].value(0)
    }

    // MARK: Pointers to polls

    @Test func publishedPollPointersAreRemoved() throws {
        var acme = try TestEnvironment()
        let polls = (0..<5).map { (UUID(), #"{"run": 1, "person": "\#($0)"}"#) }
        try acme.put(polls, .poll, into: .polls)
        try acme.put([(UUID(), #"{"text": "a"}"#)], .timeEntry, into: try .user("ana@example.com"))
        try acme.put([(polls[0].0, #"{"run": 2, "person": "0"}"#)], .poll, into: .polls)
        try acme.connection.run(
            """
            INSERT INTO realm.relay (environment_id, generation, epoch, published_epoch, position)
            VALUES (\(acme.id.rawValue), 1, 1, 1, 3)
            """)
        let keep = Self.day
        #expect(try Self.runSweep(PollPointerSweep(keep: keep), &acme) == 0, "they are recent")
        try acme.connection.run("UPDATE store.change SET changed_at = now() - interval '2 days'")
        var sweep = PollPointerSweep(keep: keep)
        for expected in [3, 0] {
            var count = 0
            while true {
                let result = try sweep.step(on: &acme.connection)
                count += result.removedCount
                if result.isLast { break }
            }
            #expect(count == expected, "those above are not published yet")
        }
        try acme.connection.run("UPDATE realm.relay SET position = 7")
        #expect(try Self.runSweep(sweep, &acme) == 3)
        #expect(try Self.count("SELECT count(*) FROM realm.change WHERE kind = 'TimeEntry'", &acme) == 1)
        #expect(try Self.count("SELECT count(*) FROM realm.change", &acme) == 1)
        #expect(try Self.count("SELECT count(*) FROM realm.object WHERE kind = 'Poll'", &acme) == 5)
    }

    // MARK: Mutation results

    @Test func resultsOfInactiveClientsAreRemoved() throws {
        var acme = try TestEnvironment()
        for (person, age) in [(Int32(-1), 100), (1, 100), (2, 10)] {
            let client = UUID()
            try acme.connection.run(
                """
                INSERT INTO device.client (environment_id, person_id, client_id, next_sequence, changed_at)
                VALUES (\(acme.id.rawValue), \(person), \(client), 2501, now() - make_interval(days => \(Int32(age))))
                """)
            try acme.connection.run(
                """
                INSERT INTO device.mutation (environment_id, person_id, client_id, sequence, position)
                SELECT \(acme.id.rawValue), \(person), \(client), n, n FROM generate_series(1, 2500) n
                """)
        }
        #expect(try Self.runSweep(MutationResultSweep(keep: Self.day * 90), &acme) == 5_000)
        #expect(try Self.count("SELECT count(*) FROM device.mutation WHERE person_id = 2", &acme) == 2_500)
        #expect(try Self.count("SELECT count(*) FROM device.mutation", &acme) == 2_500)
        #expect(try Self.count("SELECT count(*) FROM device.client WHERE next_sequence = 2501", &acme) == 3)
    }

    // MARK: The ledger

    struct LedgerCase: Sendable, CustomTestStringConvertible {
        var status: String?
        var isDeleted = false
        var phase = "settled"
        var backendID: String? = "1"
        var ageDays = 100
        let stays: Bool
        let testDescription: String
    }

    static let ledgers = [
        LedgerCase(status: "recorded", stays: false, testDescription: "closed"),
        LedgerCase(status: "recorded", ageDays: 10, stays: true, testDescription: "closed a while ago"),
        LedgerCase(status: "recorded", phase: "open", stays: true, testDescription: "closed, with an open attempt"),
        LedgerCase(status: "approved", stays: true, testDescription: "may still be edited"),
        LedgerCase(status: "invalid", backendID: nil, stays: true, testDescription: "may be resubmitted"),
        LedgerCase(isDeleted: true, stays: true, testDescription: "the record is still to be deleted"),
        LedgerCase(isDeleted: true, backendID: nil, stays: false, testDescription: "deleted without a record"),
        LedgerCase(
            isDeleted: true, phase: "unknown", backendID: nil, stays: true,
            testDescription: "deleted with an unknown outcome"),
        LedgerCase(stays: true, testDescription: "gone, with a record"),
        LedgerCase(backendID: nil, stays: false, testDescription: "gone, and no record"),
    ]

    @Test(arguments: ledgers) func ledgerStaysWhileEntryCanBeResubmitted(ledger: LedgerCase) throws {
        var acme = try TestEnvironment()
        let (id, path) = (UUID(), try RealmPath.user("ana@example.com"))
        let realm = try acme.realm(path)
        if ledger.status != nil || ledger.isDeleted {
            try acme.put([(id, #"{"status": "\#(ledger.status ?? "released")"}"#)], .timeEntry, into: path)
        }
        if ledger.isDeleted {
            var batch = WriteBatch(environment: acme.id)
            batch.delete(ObjectKey(realm: realm, kind: .timeEntry, id: id), decision: 0)
            _ = try batch.commit(on: &acme.connection)
        }
        try acme.connection.run(
            """
            INSERT INTO submission.ledger (environment_id, entry_id, realm_id, version, phase, operation, edit_position,
                lease_until, backend_id, logged_at)
            VALUES (\(acme.id.rawValue), \(id), \(realm), 1, \(ledger.phase), 'create', 1,
                now() - make_interval(days => \(Int32(ledger.ageDays))), \(ledger.backendID), 0)
            """)
        #expect(try Self.runSweep(LedgerSweep(keep: Self.day * 90), &acme) == (ledger.stays ? 0 : 1))
        #expect(try Self.count("SELECT count(*) FROM submission.ledger", &acme) == (ledger.stays ? 1 : 0))
    }

    /// The sweep does not wait for a submitter at work.
    @Test func lockedRowIsSkipped() throws {
        var acme = try TestEnvironment()
        for _ in 0..<3 {
            try acme.connection.run(
                """
                INSERT INTO submission.ledger (environment_id, entry_id, version, phase, operation, edit_position,
                    lease_until, logged_at)
                VALUES (\(acme.id.rawValue), \(UUID()), 1, 'settled', 'create', 1, now() - interval '1 year', 0)
                """)
        }
        var other = try Connection(acme.conninfo, limits: .openTransaction)
        try other.runScript(
            "BEGIN; SELECT FROM submission.ledger ORDER BY entry_id LIMIT 1 FOR UPDATE")
        #expect(try Self.runSweep(LedgerSweep(keep: Self.day), &acme) == 2)
        try other.runScript("ROLLBACK")
        #expect(try Self.runSweep(LedgerSweep(keep: Self.day), &acme) == 1)
    }

    /// Old attempts of an entry are removed, and recent ones stay.
    @Test func oldAttemptsAreRemoved() throws {
        var acme = try TestEnvironment()
        let entries = [UUID(), UUID()]
        for (version, days) in [(1, 100), (2, 91), (3, 1)] {
            try acme.connection.run(
                """
                INSERT INTO submission.attempt (environment_id, entry_id, happened_at, version, realm_id, edit_position)
                SELECT \(acme.id.rawValue), id, now() - make_interval(days => \(Int32(days))), \(Int64(version)), 1, 1
                FROM unnest(\(entries)) AS e(id)
                """)
        }
        #expect(try Self.runSweep(AttemptSweep(keep: Self.day * 90), &acme) == 4)
        #expect(try Self.count("SELECT sum(version)::bigint FROM submission.attempt", &acme) == 6)
    }

    // MARK: Polled records

    @Test func oldPolledRecordsAreRemovedWithoutTombstone() throws {
        var acme = try TestEnvironment()
        let path = try RealmPath.seen("ana@example.com")
        let now = try Self.count("SELECT (extract(epoch FROM now()) * 1000)::bigint", &acme)
        let today = Timestamp(millisecondsSinceEpoch: now).day
        for days in [500, 450, 300, 0] {
            try acme.put([(UUID(), #"{"day": "\#(today.adding(days: -days))"}"#)], .seenRecord, into: path)
        }
        let sweep = ObservationSweep(keep: Self.day * 400)
        #expect(try Self.runSweep(sweep, &acme) == 0, "their changes may still be read")
        try acme.connection.run("UPDATE realm.environment SET compacted_position = 1, generation = 0")
        #expect(try Self.runSweep(sweep, &acme) == 0, "the environment is being imported")
        try acme.connection.run("UPDATE realm.environment SET generation = 2")
        #expect(try Self.runSweep(sweep, &acme) == 1)
        try acme.connection.run("UPDATE realm.environment SET compacted_position = position")
        #expect(try Self.runSweep(sweep, &acme) == 1)
        #expect(try Self.count("SELECT count(*) FROM realm.object WHERE NOT deleted", &acme) == 2)
        #expect(try Self.count("SELECT count(*) FROM realm.object", &acme) == 2)
        #expect(try Self.count("SELECT position FROM realm.environment", &acme) == 4)
    }

    // MARK: Status lines

    @Test func newestLinesOfEachEntryStay() {
        func line(_ entry: String, _ position: Int64, at time: Int64) -> StatusLineSweep.Line {
            StatusLineSweep.Line(id: UUID(), position: position, entry: entry, time: time)
        }
        let lines = [line("a", 5, at: 1), line("a", 4, at: 2), line("b", 1, at: .min), line("a", 3, at: 2)]
        #expect(StatusLineSweep.excess(lines, keepCountMax: 1).map(\.position).sorted() == [3, 5])
        #expect(StatusLineSweep.excess(lines, keepCountMax: 2).map(\.position) == [5])
        #expect(StatusLineSweep.excess(lines, keepCountMax: 3).isEmpty)
    }

    @Test func linesBeyondTheMaximumBecomeTombstones() throws {
        var acme = try TestEnvironment()
        let (busy, calm) = (UUID(), UUID())
        func line(_ entry: UUID, _ second: Int) -> (UUID, String) {
            let time = Timestamp(millisecondsSinceEpoch: Int64(second) * 1_000)
            return (UUID(), #"{"entry": "\#(entry.text)", "status": "draft", "timestamp": "\#(time)"}"#)
        }
        for path in [try RealmPath.user("ana@example.com"), try .user("bo@example.com")] {
            try acme.put((0..<620).map { line(busy, $0) }, .timeEntryStatus, into: path)
            try acme.put((0..<10).map { line(calm, $0) }, .timeEntryStatus, into: path)
        }
        let before = try Self.count("SELECT position FROM realm.environment", &acme)
        #expect(try Self.runSweep(StatusLineSweep(keepCountMax: 10), &acme) == 1_220)
        let left = try acme.connection.run(
            """
            SELECT realm_id, fields->>'entry', count(*), min(fields->>'timestamp') FROM realm.object
            WHERE NOT deleted GROUP BY 1, 2
            """)
        #expect(left.count == 4)
        for row in left {
            #expect(try row.value(2, as: Int64.self) == 10)
            let isBusy = try row.value(1, as: String.self) == busy.text
            #expect(try row.value(3, as: String.self).hasSuffix(isBusy ? "00:10:10.000Z" : "00:00:00.000Z"))
        }
        // Devices receive the tombstones.
        #expect(
            try Self.count(
                "SELECT count(*) FROM realm.object WHERE deleted AND position > \(before)", &acme) == 1_220)
        #expect(try Self.count("SELECT count(*) FROM realm.change WHERE position > \(before)", &acme) == 1_220)
    }

    // MARK: By age

    @Test func oldAndRevokedTokensAreRemoved() throws {
        var acme = try TestEnvironment()
        try acme.connection.run(
            """
            WITH p AS (
                INSERT INTO access.person (environment_id, email) VALUES (\(acme.id.rawValue), 'ana@example.com')
                RETURNING id
            )
            INSERT INTO onboarding.refresh_token
                (environment_id, person_id, token, obtained_at, revoked_at, device, used_at)
            SELECT \(acme.id.rawValue), p.id, '', now() - t.age, t.revoked, t.device, now() - t.used
            FROM p, (VALUES
                (interval '401 days', NULL, NULL, interval '1 day'), ('1 day', now(), NULL, '1 day'),
                ('399 days', NULL, NULL, '399 days'),
                ('1 day', NULL, '\\x01'::bytea, '91 days'), ('399 days', NULL, '\\x02', '89 days')
            ) t(age, revoked, device, used)
            """)
        #expect(try Self.runSweep(TokenSweep(keep: Self.day * 400, unused: Self.day * 90), &acme) == 3)
        let left = try acme.connection.run(
            "SELECT coalesce(encode(device, 'hex'), 'none') FROM onboarding.refresh_token ORDER BY 1")
        #expect(try left.map { try $0.value(0, as: String.self) } == ["02", "none"])
    }

    @Test func oldAuditRecordsAreRemoved() throws {
        var acme = try TestEnvironment()
        try acme.connection.run(
            """
            INSERT INTO access.audit (happened_at, actor, action, subject, address)
            SELECT now() - make_interval(days => 6000 - n), 'ana', 'role.changed', 'bo', ''
            FROM generate_series(1, 6000) n
            """)
        #expect(try Self.runSweep(AuditSweep(keep: Self.day * 400), &acme) == 5_600)
        #expect(try Self.count("SELECT count(*) FROM access.audit", &acme) == 400)
    }

    @Test func oldDeadLetteredKeysAreRemoved() throws {
        var acme = try TestEnvironment()
        try acme.connection.run(
            """
            INSERT INTO pipeline.parked (group_name, environment_id, key, topic, partition, subject, position, reason,
                is_dead, is_circuit, attempts, parked_at, next_at)
            SELECT 'g', \(acme.id.rawValue), n::text, 't', 0, n::text, 0, 'r', n % 2 = 0, false, 1,
                now() - make_interval(days => n), now()
            FROM generate_series(1, 400) n
            """)
        #expect(try Self.runSweep(ParkedSweep(keep: Self.day * 180, logger: quiet), &acme) == 111)
        #expect(try Self.count("SELECT count(*) FROM pipeline.parked WHERE NOT is_dead", &acme) == 200)
        #expect(
            try Self.count(
                "SELECT count(*) FROM pipeline.parked WHERE is_dead AND parked_at < now() - interval '180 days'", &acme)
                == 0)
    }

    // MARK: Together

    /// As in the service: each sweep completes and waits for its next run.
    @Test func allSweepsComplete() throws {
        var acme = try TestEnvironment()
        let path = try RealmPath.user("ana@example.com")
        try acme.put([(UUID(), #"{"run": 1}"#)], .poll, into: .polls)
        let lines = (0..<101).map { _ in (UUID(), #"{"entry": "e", "timestamp": "2015-03-30T12:00:00Z"}"#) }
        try acme.put(lines, .timeEntryStatus, into: path)
        try acme.put([(UUID(), #"{"day": "2015-03-30"}"#)], .seenRecord, into: try .seen("ana@example.com"))
        try acme.connection.runScript(
            """
            UPDATE store.change SET changed_at = now() - interval '2 hours';
            UPDATE realm.environment SET compacted_position = position;
            INSERT INTO realm.relay SELECT id, 1, 1, 1, position FROM realm.environment;
            INSERT INTO device.client SELECT id, 1, gen_random_uuid(), 2, now() - interval '1 year'
                FROM realm.environment;
            INSERT INTO device.mutation SELECT environment_id, 1, client_id, 1, 1 FROM device.client;
            INSERT INTO submission.ledger (environment_id, entry_id, version, phase, operation, edit_position,
                lease_until, logged_at)
            SELECT id, gen_random_uuid(), 1, 'settled', 'create', 1, now() - interval '1 year', 0
                FROM realm.environment;
            INSERT INTO access.person (environment_id, email) SELECT id, 'ana@example.com' FROM realm.environment;
            INSERT INTO onboarding.refresh_token (environment_id, person_id, token, revoked_at)
                SELECT environment_id, id, '', now() FROM access.person;
            INSERT INTO access.audit (happened_at, actor, action, subject, address)
                VALUES (now() - interval '2 years', 'ana', 'role.changed', 'bo', '');
            INSERT INTO pipeline.parked SELECT 'g', id, 'k', 't', 0, 'k', 0, 'r', true, false, 1,
                now() - interval '1 year', now() FROM realm.environment;
            """)
        let defaults = try Configuration(RetentionSettings.all, environment: [:])
        var retention = try Retention(
            conninfo: acme.conninfo, sweeps: RetentionSettings.sweeps(defaults, quiet), interval: .seconds(21_600),
            logger: quiet)
        try wait("all sweeps") { try retention.step() > .seconds(1) }
        let left = try acme.connection.run(
            """
            SELECT (SELECT count(*) FROM realm.change WHERE kind = 'Poll'), (SELECT count(*) FROM device.mutation),
                (SELECT count(*) FROM submission.ledger), (SELECT count(*) FROM realm.object WHERE kind = 'SeenRecord'),
                (SELECT count(*) FROM realm.object WHERE kind = 'TimeEntryStatus' AND deleted),
                (SELECT count(*) FROM onboarding.refresh_token), (SELECT count(*) FROM access.audit),
                (SELECT count(*) FROM pipeline.parked)
            """)[0]
        #expect(try (0..<8).map { try left.value($0, as: Int64.self) } == [0, 0, 0, 0, 1, 0, 0, 0])
    }
}

import BackendProtocol
import Backends
import Catalogues
import Essentials
import Foundation
import Logging
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import BackendPoller
@testable import KeyedWorker

/// Catalogues in a PostgreSQL database, with given results of the back end.
@Suite(.ownThreads) struct CatalogueReconcilerTests {
    private typealias World = PollHandlerTests

    @Test func addedAndRemovedProjectsReachPerson() throws {
        var acme = try World.environment()
        try Self.read(["ana": ["P1", "P2"]], 1, &acme)
        let first = try #require(try Self.catalogues(&acme)["ana"])
        #expect(try Self.held(first, &acme) == ["P1", "P2"])
        try Self.read(["ana": ["P2", "P3"]], 2, &acme)
        #expect(try Self.catalogues(&acme) == ["ana": first], "the catalogue is kept")
        #expect(try Self.held(first, &acme) == ["P2", "P3"])
        // A new name changes one object.
        var renamed = World.data(["P2", "P3"])
        renamed.nodes[0].fields.title = "Roof"
        let position = try World.position(&acme)
        try Self.poll("ana", renamed, 3, &acme)
        try World.settle(&acme)
        #expect(try Self.held(first, &acme) == ["P3", "Roof"])
        #expect(try World.position(&acme) == position + 2, "the poll, and the node")
    }

    @Test func audiencesSplitAndMergeWithoutRedundantWrites() throws {
        var acme = try Self.environment(["ana", "ben", "eva"])
        let both: Set = ["P1", "P2"]
        try Self.read(["ana": both, "ben": both, "eva": both], 1, &acme)
        let first = try Self.catalogues(&acme)
        #expect(Set(first.values).count == 1)
        // One more project for two of them.
        try Self.read(["ana": ["P1", "P2", "P3"], "ben": ["P1", "P2", "P3"], "eva": both], 2, &acme)
        let second = try Self.catalogues(&acme)
        #expect(second["ana"] == first["ana"] && second["ben"] == first["ana"] && second["eva"] != first["ana"])
        #expect(try second.mapValues { try Self.held($0, &acme) }["eva"] == ["P1", "P2"])
        // She gets it too: the audiences are merged, and her catalogue is empty.
        let all: Set = ["P1", "P2", "P3"]
        try Self.read(["ana": all, "ben": all, "eva": all], 3, &acme)
        #expect(Set(try Self.catalogues(&acme).values) == [first["ana"]])
        #expect(try Self.held(try #require(second["eva"]), &acme) == [])
        let reconciler = CatalogueReconciler(logger: Logger(label: "reconciler"))
        try reconciler.removeUnusedTrees(acme.id, on: &acme.connection)
        let counts = try acme.connection.run(
            "SELECT (SELECT count(*) FROM audience.tree), (SELECT count(*) FROM audience.catalogue)")
        #expect(try counts[0].value(0, as: Int64.self) == 1 && counts[0].value(1, as: Int64.self) == 1)
        let position = try World.position(&acme)
        try World.settle(&acme)
        #expect(try World.position(&acme) == position)
    }

    /// A device that follows the change log must not receive new nodes before it is notified that its person has left.
    @Test func leavingPersonIsWrittenBeforeNewNodes() throws {
        var acme = try Self.environment(["ana", "ben", "eva"])
        let both: Set = ["P1", "P2"]
        try Self.read(["ana": both, "ben": both, "eva": both], 1, &acme)
        let before = try World.position(&acme)
        try Self.read(["ana": ["P1", "P2", "P3"], "ben": ["P1", "P2", "P3"], "eva": both], 2, &acme)
        let catalogue = try #require(try Self.catalogues(&acme)["ana"])
        let new = try World.objects([.reportingTreeNode], in: .catalogue(catalogue), &acme).filter {
            $0.position > before
        }
        let eva = try #require(try World.objects([.user], in: try .user("eva@example.com"), &acme).first)
        #expect(eva.position > before && new.count == 1)
        #expect(new.allSatisfy { eva.position < $0.position })
    }

    /// A person who is read again during the plan gets nothing that was planned before.
    @Test func personReadMeanwhileIsPlannedAgain() throws {
        var acme = try Self.environment(["ana", "ben"])
        try Self.read(["ana": ["P1"], "ben": ["P1"]], 1, &acme)
        let catalogue = try #require(try Self.catalogues(&acme)["ana"])
        try Self.poll("ana", World.data(["P1", "P2"]), 2, &acme)
        try Self.poll("ben", World.data(["P1", "P2"]), 2, &acme)
        // As if ben had been read again after the plan was made.
        let other = NodeTree(World.data(["P1"]).nodes).digest
        try acme.connection.run(
            """
            CREATE FUNCTION pg_temp.read_anew() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                UPDATE audience.person SET tree = (SELECT tree FROM audience.catalogue) WHERE email = 'ben@example.com';
                RETURN NULL;
            END $$
            """)
        try acme.connection.run(
            """
            CREATE TRIGGER read_anew BEFORE UPDATE ON realm.environment
            FOR EACH STATEMENT EXECUTE FUNCTION pg_temp.read_anew()
            """)
        var reconciler = CatalogueReconciler(logger: Logger(label: "reconciler"))
        #expect(try !reconciler.settle(acme.id, since: World.time(0), on: &acme.connection))
        #expect(try Self.held(catalogue, &acme) == ["P1"])
        try acme.connection.run("DROP TRIGGER read_anew ON realm.environment")
        #expect(
            try acme.connection.run("SELECT tree FROM audience.person WHERE email = 'ben@example.com'")[0]
                .value(0, as: UUID.self) == other)
        try World.settle(&acme)
        #expect(
            try Self.catalogues(&acme).mapValues { try Self.held($0, &acme) } == ["ana": ["P1", "P2"], "ben": ["P1"]])
    }

    /// A poll was decided from an old `User`, and her templates have changed: her catalogue is kept.
    @Test func pollKeepsCatalogueOfReconciler() throws {
        var acme = try Self.environment(["ana", "ben", "eva"])
        let all: Set = ["P1", "P2"]
        try Self.read(["ana": all, "ben": all, "eva": all], 1, &acme)
        let first = try #require(try Self.catalogues(&acme)["ana"])
        try Self.poll("ana", World.data(["P1"]), 2, &acme)
        try World.nextRun(&acme, 3)
        var changed = World.data(["P1"])
        changed.templates.append(Identified(id: UUID(), fields: changed.templates[0].fields))
        let days = Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 200)
        let batch = try World.prepare(.data(changed, [], days), &acme)
        try World.settle(&acme)
        let second = try #require(try Self.catalogues(&acme)["ana"])
        #expect(second != first)
        #expect(try batch.commit(on: &acme.connection).conflicts == [0])
        #expect(try Self.catalogues(&acme)["ana"] == second)
        // Reprocessed with the current state.
        let again = try World.prepare(.data(changed, [], days), &acme)
        #expect(try again.commit(on: &acme.connection).conflicts.isEmpty)
        #expect(try Self.catalogues(&acme)["ana"] == second)
        let user = try World.objects([.user], in: try .user("ana@example.com"), &acme).first
        #expect(try user?.decoded(as: User.self, by: JSONDecoder())?.reportingTemplates.count == 2)
    }

    /// A failure in one environment does not delay others.
    @Test func failureInOneEnvironmentDoesNotAffectOthers() throws {
        var acme = try World.environment()
        try EnvironmentRows(name: "other", backend: .init()).insert(on: &acme.connection)
        try acme.connection.run(
            """
            CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF OLD.name = 'acme' THEN RAISE 'trouble'; END IF;
                RETURN NEW;
            END $$
            """)
        try acme.connection.run(
            "CREATE TRIGGER fail BEFORE UPDATE ON realm.environment FOR EACH ROW EXECUTE FUNCTION public.fail()")
        var scheduler = try World.scheduler(acme)
        #expect(try scheduler.step(now: World.time(1)))
        let rows = try acme.connection.run(
            "SELECT e.name FROM poll.run r JOIN realm.environment e ON e.id = r.environment_id WHERE r.run > 0")
        #expect(try rows.map { try $0.value(0, as: String.self) } == ["other"])
    }

    /// An entry keeps its selected node, which can no longer be selected.
    @Test func deletedProjectStaysReadableForEntries() throws {
        var acme = try World.environment()
        try Self.read(["ana": ["P1", "P2"]], 1, &acme)
        let own = try RealmPath.user("ana@example.com")
        let node = World.data(["P1"]).nodes[0].id
        let context = World.data(["P1"]).contexts[0].id
        let entry = UUID()
        try acme.put(
            [(entry, #"{"text": "roof", "reporting": [{"context": "\#(context)", "node": "\#(node)"}]}"#)],
            .timeEntry, into: own)
        try Self.read(["ana": ["P2"]], 2, &acme)
        #expect(try Self.retired(&acme) == ["P1"])
        #expect(try Self.catalogues(&acme).mapValues { try Self.held($0, &acme) } == ["ana": ["P2"]])
        let position = try World.position(&acme)
        try Self.read(["ana": ["P2"]], 3, &acme)
        #expect(try World.position(&acme) == position + 1, "the poll alone")
        // It can be selected again, or no entry has it any more.
        try Self.read(["ana": ["P1", "P2"]], 4, &acme)
        #expect(try Self.retired(&acme) == [])
        try Self.read(["ana": ["P2"]], 5, &acme)
        #expect(try Self.retired(&acme) == ["P1"])
        try acme.put([(entry, #"{"text": "roof", "reporting": []}"#)], .timeEntry, into: own)
        try Self.read(["ana": ["P2"]], 6, &acme)
        #expect(try Self.retired(&acme) == [])
    }

    /// A record of a new project is reported before the catalogue has the project, so the entry has no selections. When
    /// they can be resolved, the record is reported in each run until the entry has them.
    @Test func recordOfNewProjectIsReportedUntilResolved() throws {
        var acme = try World.environment()
        func poll(_ run: Int64, _ projects: [String]) throws -> Int64? {
            try World.nextRun(&acme, run)
            let days = Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 200)
            try World.poll(.data(World.data(projects, below: "Project"), [World.entry("1")], days), &acme)
            return try World.objects([.seenRecord], in: try .seen("ana@example.com"), &acme).first?
                .decoded(as: SeenRecord.self, by: JSONDecoder())?.toldRun
        }
        #expect(try poll(1, []) == nil)
        let own = try acme.realm(try .user("ana@example.com"))
        let entry = ObjectKey(
            realm: own, kind: .timeEntry, id: RealmContents.entryID(of: World.entry("1"), of: "ana@example.com"))
        func makeEntry(_ reporting: String) throws {
            var batch = WriteBatch(environment: acme.id)
            batch.put(
                entry,
                try CanonicalJSON(
                    """
                    {"backendId": "1", "status": "released", "entryDate": "1970-05-31", "text": "work",
                     "durationSeconds": 3600, "reporting": \(reporting)}
                    """),
                decision: 0)
            _ = try batch.commit(on: &acme.connection)
        }
        try makeEntry("[]")
        #expect(try poll(2, []) == nil, "nothing can be resolved yet")
        #expect(try poll(3, ["P1"]) == 3)
        #expect(try poll(4, ["P1"]) == 4)
        try makeEntry(#"[{"context": "\#(UUID())", "node": "\#(UUID())"}]"#)
        #expect(try poll(5, ["P1"]) == 5, "the person selected another project")
        #expect(try poll(6, ["P1"]) == 5)
    }

    /// People get and lose projects at random; each is read sometimes, and the reconciler runs or is interrupted in
    /// between. No person ever gets another person's nodes, and finally each has exactly their own.
    @Test(arguments: Seeds.random(4, for: "audiences")) func peopleOnlyGetTheirOwnNodes(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let people = (0..<6).map { "p\($0)" }
        var acme = try Self.environment(people)
        var truth = Dictionary(uniqueKeysWithValues: people.map { ($0, Set(["P0", "P1"])) })
        var read = truth
        var polls: [String: Int64] = [:]
        func poll(_ person: String) throws {
            polls[person, default: 0] += 1
            read[person] = truth[person]
            try Self.poll(person, World.data((truth[person] ?? []).sorted()), polls[person] ?? 0, &acme)
        }
        for person in people { try poll(person) }
        try World.settle(&acme)
        for _ in 0..<60 {
            let before = try Self.catalogues(&acme).mapValues { try Self.held($0, &acme) }
            switch Int.random(in: 0..<6, using: &random) {
            case 0, 1:
                let project = "P\(Int.random(in: 0..<5, using: &random))"
                // Single people, or all together.
                let some = Bool.random(using: &random) ? people : [people.randomElement(using: &random) ?? ""]
                let isAdded = Bool.random(using: &random)
                for person in some {
                    if isAdded { truth[person]?.insert(project) } else { truth[person]?.remove(project) }
                }
            case 2, 3, 4: try poll(people.randomElement(using: &random) ?? "")
            default:
                try Self.interrupt(after: Int.random(in: 0..<6, using: &random), &acme)
                var reconciler = CatalogueReconciler(logger: Logger(label: "reconciler"))
                _ = try? reconciler.settle(acme.id, since: World.time(0), on: &acme.connection)
                try acme.connection.run("DROP TRIGGER interrupt ON realm.environment")
            }
            for (person, held) in try Self.catalogues(&acme).mapValues({ try Self.held($0, &acme) }) {
                let gained = held.subtracting(before[person] ?? [])
                #expect(gained.isSubset(of: read[person] ?? []), "\(person) got \(gained), seed \(seed)")
            }
        }
        for person in people { try poll(person) }
        for person in people { try poll(person) }
        try World.settle(&acme)
        #expect(try Self.catalogues(&acme).mapValues { try Self.held($0, &acme) } == truth, "seed \(seed)")
        #expect(Set(try Self.catalogues(&acme).values).count == Set(truth.values).count)
    }

    // MARK: Actions

    static func environment(_ people: [String]) throws -> TestEnvironment {
        var acme = try TestEnvironment()
        for name in people {
            let email = "\(name)@example.com"
            try acme.put(
                [(UUID(), #"{"userId": "\#(email)", "path": "/users/\#(email)", "isInitialized": true}"#)],
                .realms, into: .users)
            try acme.addPerson(email)
        }
        return acme
    }

    /// Runs once: all people are read, and catalogues are reconciled.
    static func read(
        _ projects: [String: Set<String>], _ run: Int64, _ acme: inout TestEnvironment
    ) throws {
        for (name, projects) in projects.sorted(by: { $0.key < $1.key }) {
            try poll(name, World.data(projects.sorted()), run, &acme)
        }
        try World.settle(&acme)
    }

    private static func poll(
        _ name: String, _ data: ReportingData, _ run: Int64, _ acme: inout TestEnvironment
    ) throws {
        try World.nextRun(&acme, run, of: "\(name)@example.com")
        try World.poll(
            .data(data, [], Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 200)), &acme, of: "\(name)@example.com")
    }

    /// Makes a later transaction fail, after a number of others.
    private static func interrupt(after count: Int, _ acme: inout TestEnvironment) throws {
        try acme.connection.run("SELECT set_config('test.left', \(String(count)), false)")
        try acme.connection.run(
            """
            CREATE OR REPLACE FUNCTION public.interrupt() RETURNS trigger LANGUAGE plpgsql AS $$
            DECLARE n int := current_setting('test.left');
            BEGIN
                IF n = 0 THEN RAISE 'interrupted'; END IF;
                PERFORM set_config('test.left', (n - 1)::text, false);
                RETURN NULL;
            END $$
            """)
        try acme.connection.run(
            """
            CREATE TRIGGER interrupt BEFORE UPDATE ON realm.environment
            FOR EACH STATEMENT EXECUTE FUNCTION public.interrupt()
            """)
    }

    // MARK: Stored state

    /// Returns people's catalogues by name.
    static func catalogues(_ acme: inout TestEnvironment) throws -> [String: UUID] {
        var catalogues: [String: UUID] = [:]
        let rows = try acme.connection.run(
            """
            SELECT split_part(fields->>'email', '@', 1), (fields->>'catalogue')::uuid FROM realm.object
            WHERE environment_id = \(acme.id.rawValue) AND kind = 'User' AND NOT deleted AND fields->>'catalogue' > ''
            """)
        for row in rows { catalogues[try row.value(0)] = try row.value(1) }
        return catalogues
    }

    static func held(_ catalogue: UUID, _ acme: inout TestEnvironment) throws -> Set<String> {
        try names(in: .catalogue(catalogue), &acme)
    }

    private static func retired(_ acme: inout TestEnvironment) throws -> Set<String> {
        try names(in: try .user("ana@example.com"), &acme)
    }

    private static func names(in path: RealmPath, _ acme: inout TestEnvironment) throws -> Set<String> {
        let nodes = try World.objects([.reportingTreeNode], in: path, &acme).compactMap {
            try $0.decoded(as: ReportingTreeNode.self, by: JSONDecoder())
        }
        return Set(nodes.map { $0.title ?? $0.name })
    }
}

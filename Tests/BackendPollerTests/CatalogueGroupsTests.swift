import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import Logging
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import BackendPoller

/// Reads of people and trees by the reconciler, which are limited to differences.
@Suite(.ownThreads) struct CatalogueGroupsTests {
    private typealias World = PollHandlerTests

    /// A tree with many new nodes is scanned; from one with few new nodes, they are fetched.
    @Test(arguments: [1, 10, 11, 25]) func onlyNewNodesAreWritten(_ count: Int) throws {
        var acme = try World.environment()
        let names = (1...30).map { "P\($0)" }
        try Self.read(["ana"], World.data(names), 1, &acme)
        var renamed = World.data(names)
        for index in 0..<count { renamed.nodes[index].fields.title = "new \(index)" }
        let before = try World.position(&acme)
        try Self.read(["ana"], renamed, 2, &acme)
        #expect(try World.position(&acme) == before + 1 + Int64(count), "the poll, and the nodes")
        let held = try Self.held("ana", &acme)
        #expect(held == Set((0..<count).map { "new \($0)" } + names.dropFirst(count)))
    }

    /// A person who joins a share after it was counted is moved with it; a person who leaves it is not.
    @Test func movedPeopleAreReadAfterPlanning() throws {
        let people = ["ana", "ben", "eva", "ida"]
        var acme = try Self.environment(people)
        let (less, more) = (World.data(["P1"]), World.data(["P1", "P2"]))
        try Self.read(people, less, 1, &acme)
        try Self.poll("ana", more, 2, &acme)
        try Self.poll("ben", more, 2, &acme)
        // Read after them, so that nothing is deferred.
        try Self.poll("eva", less, 2, &acme)
        try Self.poll("ida", less, 2, &acme)
        // As if they had been read again after the groups were counted: the moved share has another person.
        try acme.connection.run(
            """
            CREATE FUNCTION public.swap() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
                IF NEW.path LIKE '/catalogues/%' THEN
                    UPDATE audience.person SET tree = (SELECT tree FROM audience.person
                        WHERE email = CASE p.email WHEN 'ben@example.com' THEN 'ida@example.com'
                            ELSE 'ana@example.com' END)
                    FROM (VALUES ('ben@example.com'), ('eva@example.com')) AS p(email)
                    WHERE audience.person.email = p.email;
                END IF;
                RETURN NEW;
            END $$
            """)
        try acme.connection.run(
            "CREATE TRIGGER swap BEFORE INSERT ON realm.realm FOR EACH ROW EXECUTE FUNCTION public.swap()")
        try World.settle(&acme)
        let held = try people.map { try Self.held($0, &acme) }
        #expect(held == [["P1", "P2"], ["P1"], ["P1", "P2"], ["P1"]])
    }

    /// A cached tree is the content of a catalogue; a tree that was deleted meanwhile is not used.
    @Test func cachedTreesGiveSameWrites() throws {
        var acme = try World.environment()
        var reconciler = CatalogueReconciler(logger: Logger(label: "reconciler"))
        for (run, projects) in [["P1"], ["P1", "P2"], ["P2", "P3"], [], ["P1"], ["P1", "P2"]].enumerated() {
            try Self.poll("ana", World.data(projects), Int64(run + 1), &acme)
            #expect(try reconciler.settle(acme.id, since: World.time(0), on: &acme.connection))
            #expect(try Self.held("ana", &acme) == Set(projects))
            try reconciler.removeUnusedTrees(acme.id, on: &acme.connection)
        }
        try Self.poll("ana", World.data(["P1"]), 7, &acme)
        let digest = NodeTree(World.data(["P1"]).nodes).digest
        try acme.connection.run("DELETE FROM audience.tree WHERE digest = \(digest)")
        #expect(try !reconciler.settle(acme.id, since: World.time(0), on: &acme.connection))
        #expect(try Self.held("ana", &acme) == ["P1", "P2"])
    }

    // MARK: Helpers

    private static func environment(_ people: [String]) throws -> TestEnvironment {
        var acme = try TestEnvironment()
        for name in people { try acme.addPerson("\(name)@example.com") }
        return acme
    }

    /// Runs once: all people are read, and catalogues are reconciled.
    private static func read(
        _ people: [String], _ data: ReportingData, _ run: Int64, _ acme: inout TestEnvironment
    ) throws {
        for name in people { try poll(name, data, run, &acme) }
        try World.settle(&acme)
    }

    private static func poll(
        _ name: String, _ data: ReportingData, _ run: Int64, _ acme: inout TestEnvironment
    ) throws {
        let email = "\(name)@example.com"
        try World.nextRun(&acme, run, of: email)
        let days = Day(daysSinceEpoch: 100)...Day(daysSinceEpoch: 200)
        try World.poll(.data(data, [], days), &acme, of: email)
    }

    /// Returns the nodes of the person's catalogue by title or name.
    private static func held(_ name: String, _ acme: inout TestEnvironment) throws -> Set<String> {
        let user = try World.objects([.user], in: try .user("\(name)@example.com"), &acme).first
        let catalogue = try #require(try user?.decoded(as: User.self, by: JSONDecoder())?.catalogue)
        let nodes = try World.objects([.reportingTreeNode], in: .catalogue(catalogue), &acme).compactMap {
            try $0.decoded(as: ReportingTreeNode.self, by: JSONDecoder())
        }
        return Set(nodes.map { $0.title ?? $0.name })
    }
}

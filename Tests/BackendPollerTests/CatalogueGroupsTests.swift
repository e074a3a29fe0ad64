import BackendProtocol
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import Logging
import Model
import Postgres
import Realms
import TestSupport
import Testing

@testable import BackendPoller

/// What is read of people and trees, so that catalogues follow: no more than what differs.
@Suite(.ownThreads) struct CatalogueGroupsTests {
    private typealias World = PollHandlerTests

    /// A tree of which many nodes are new is looked through; of one of which a few are, they are fetched.
    @Test(arguments: [1, 10, 11, 25]) func asManyNodesAsAreNewAreWritten(_ count: Int) throws {
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

    /// A remembered tree says what a catalogue holds; one that is forgotten meanwhile is not gone on to.
    @Test func aReconcilerThatRemembersTreesWritesTheSame() throws {
        var acme = try World.environment()
        var keeper = CatalogueReconciler(logger: Logger(label: "keeper"))
        for (run, projects) in [["P1"], ["P1", "P2"], ["P2", "P3"], ["P1"], ["P1", "P2"], []].enumerated() {
            try Self.poll("ana", World.data(projects), Int64(run + 1), &acme)
            #expect(try keeper.settle(acme.id, since: World.time(0), on: &acme.connection))
            #expect(try Self.held("ana", &acme) == Set(projects))
            try keeper.forgetTrees(acme.id, on: &acme.connection)
        }
        try Self.poll("ana", World.data(["P1"]), 7, &acme)
        let digest = NodeTree(World.data(["P1"]).nodes).digest
        try acme.connection.run("DELETE FROM audience.tree WHERE digest = \(digest)")
        #expect(try !keeper.settle(acme.id, since: World.time(0), on: &acme.connection))
        #expect(try Self.held("ana", &acme) == [])
    }

    // MARK: Acting and reading

    /// One run: everybody is read, and catalogues follow.
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

    /// What is in the person's catalogue, by title or name.
    private static func held(_ name: String, _ acme: inout TestEnvironment) throws -> Set<String> {
        let user = try World.objects([.user], in: try .user("\(name)@example.com"), &acme).first
        let catalogue = try #require(try user?.decoded(as: User.self, by: JSONDecoder())?.catalogue)
        let nodes = try World.objects([.reportingTreeNode], in: .catalogue(catalogue), &acme).compactMap {
            try $0.decoded(as: ReportingTreeNode.self, by: JSONDecoder())
        }
        return Set(nodes.map { $0.title ?? $0.name })
    }
}

import Algorithms
import Backends
import Catalogues
import Essentials
import FoundationEssentials
import Logging
import Model
import ObjectStore
import Postgres

/// People in audiences with a catalogue each, in an environment of their own; and a project more for everybody.
struct BenchAudiences: ~Copyable {
    let audienceCount: Int
    private let environment: EnvironmentID
    private let emails: [String]
    private var trees: [[Identified<ReportingTreeNode>]]
    /// Realms that get as many nodes with nothing around it.
    private var plainRealms: [Int32] = []
    private var connection: Connection
    private var keeper = CatalogueReconciler(logger: Logger(label: "bench") { _ in SwiftLogNoOpLogHandler() })

    /// Trees stored in one transaction.
    private static let batchCount = 50

    init(
        audiences: Int, people: Int, nodes: Int, environment: EnvironmentID, conninfo: String
    ) throws {
        audienceCount = audiences
        self.environment = environment
        emails = (0..<people).map { "u\($0)@bench.example" }
        connection = try Connection(conninfo)
        let common = (1..<nodes).map { Self.node("common \($0)") }
        trees = (0..<audiences).map { common + [Self.node("own \($0)")] }
    }

    /// Gives everybody their first catalogue.
    mutating func prepare() throws {
        try read()
        try settle()
        var directory = RealmDirectory()
        let paths = (0..<audienceCount).map { RealmPath.catalogue(StableID.uuid("plain", "\($0)")) }
        let realms = try directory.ids(of: paths, in: environment, create: true, on: &connection)
        plainRealms = paths.compactMap { realms[$0] }
        try connection.runScript("VACUUM store.object")
    }

    /// A project more for everybody, in as many catalogues as there are audiences.
    ///
    /// - Returns: How long it takes until all have it, from when everybody has been read.
    mutating func addProject(_ number: Int) throws -> Duration {
        for index in trees.indices { trees[index].append(Self.node("new \(number)")) }
        try read()
        let before = try position()
        try keeper.forgetTrees(environment, on: &connection)
        let start = ContinuousClock.now
        try settle()
        let time = ContinuousClock.now - start
        let written = try position() - before
        guard written == Int64(audienceCount) else {
            throw BenchPlace.Missing(description: "\(written) positions for \(audienceCount) audiences")
        }
        return time
    }

    /// As many nodes, written alone.
    mutating func insert(_ number: Int) throws -> Duration {
        let node = Self.node("plain \(number)")
        let fields = try CanonicalJSON(encoding: node.fields)
        let start = ContinuousClock.now
        var rest = plainRealms[...]
        while !rest.isEmpty {
            var batch = WriteBatch(environment: environment)
            for realm in rest.prefix(CatalogueReconciler.countMax) {
                batch.put(ObjectKey(realm: realm, kind: .reportingTreeNode, id: node.id), fields, decision: 0)
            }
            _ = try batch.commit(on: &connection)
            rest = rest.dropFirst(CatalogueReconciler.countMax)
        }
        return ContinuousClock.now - start
    }

    /// What polls write down of everybody.
    private mutating func read() throws {
        let now = Timestamp.now()
        for page in trees.indices.chunks(ofCount: Self.batchCount) {
            var batch = WriteBatch(environment: environment)
            var readings: [AudienceStore.Reading] = []
            for audience in page {
                let tree = NodeTree(trees[audience])
                batch.also(try AudienceStore.store(tree, nodes: trees[audience], in: environment))
                readings += stride(from: audience, to: emails.count, by: audienceCount).map {
                    AudienceStore.Reading(email: emails[$0], tree: tree.digest, readAt: now, decision: 0)
                }
            }
            batch.also(AudienceStore.remember(readings, in: environment))
            _ = try batch.commit(on: &connection)
        }
    }

    private mutating func settle() throws {
        let since = Timestamp(millisecondsSinceEpoch: 0)
        guard try keeper.settle(environment, since: since, on: &connection) else {
            throw BenchPlace.Missing(description: "catalogues did not follow")
        }
    }

    private mutating func position() throws -> Int64 {
        try connection.run("SELECT position FROM realm.environment WHERE id = \(environment.rawValue)")[0]
            .decode(Int64.self)
    }

    private static func node(_ name: String) -> Identified<ReportingTreeNode> {
        Identified(
            id: StableID.uuid("node", name),
            fields: ReportingTreeNode(referenceId: name, name: name, parent: StableID.uuid("node", "root")))
    }
}

package import Essentials
import FoundationEssentials
package import Logging
package import Model
import ObjectStore
package import Postgres

/// Writes the catalogues that `AudienceRule` plans, so that each person's catalogue contains the person's last
/// reporting tree. After an interruption it resumes from the stored state.
package struct CatalogueReconciler {
    /// Maximum number of changed catalogues and moved people per transaction, except for a larger single unit.
    package static let countMax = 200
    /// Maximum number of nodes per transaction, except for a larger single catalogue.
    static let nodesMax = 4_000

    private var directory = RealmDirectory()
    private let logger: Logger
    private var trees = TreeDigestCache()

    package init(logger: Logger) { self.logger = logger }

    /// - Parameter since: The start of the last full comparison. Trees that were first read before are not deferred.
    /// - Returns: Whether all catalogues are correct; false if people were read again meanwhile.
    package mutating func settle(
        _ environment: EnvironmentID, since: Timestamp, on connection: inout Connection
    ) throws -> Bool {
        let results = try connection.run([
            AudienceStore.groups(in: environment), AudienceStore.catalogues(in: environment),
        ])
        var groups: [AudienceRule.Group] = []
        groups.reserveCapacity(results[0].count)
        for row in results[0] { groups.append(try AudienceRule.Group(row)) }
        let catalogues = Dictionary(try results[1].decode(UUID.self, UUID.self)) { first, _ in first }
        let steps = AudienceRule.deferrableSteps(groups, catalogues: catalogues, since: since)
        let deferred = try steps.unread.union(additiveSteps(of: steps.maybeLate, environment, &connection))
        let plan = AudienceRule.plan(groups, catalogues: catalogues, deferred: deferred)
        if plan.isEmpty { return true }
        for (catalogue, tree) in plan.created.sorted(by: { $0.key < $1.key }) {
            try create(catalogue, tree, environment, &connection)
        }
        let missedCount =
            try move(plan, catalogues.merging(plan.created) { $1 }, environment, &connection)
            + (try abandon(plan.abandoned, catalogues, environment, &connection))
        logger.notice(
            "catalogues updated",
            metadata: [
                "environment": "\(environment)", "created": "\(plan.created.count)",
                "changed": "\(plan.changed.count)", "moved": "\(plan.moved.count)",
                "abandoned": "\(plan.abandoned.count)", "missed": "\(missedCount)",
            ])
        return missedCount == 0
    }

    /// Returns the steps that only add nodes.
    private mutating func additiveSteps(
        of steps: Set<AudienceRule.Step>, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> Set<AudienceRule.Step> {
        var additive: Set<AudienceRule.Step> = []
        // In batches, because trees may be large.
        var remaining = Array(steps)[...]
        while !remaining.isEmpty {
            let batch = remaining.prefix(Self.countMax)
            remaining = remaining.dropFirst(batch.count)
            let trees = try trees(of: batch, environment, &connection)
            for step in batch where Self.difference(step, trees)?.isAdditive == true { additive.insert(step) }
        }
        return additive
    }

    private mutating func trees(
        of steps: some Sequence<AudienceRule.Step>, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> [UUID: NodeDigests] {
        var loaded: [UUID: NodeDigests] = [:]
        // A new tree may have been deleted, so it is always read from the database.
        var missing: Set<UUID> = []
        for step in steps {
            loaded[step.from] = trees[step.from]
            if loaded[step.from] == nil { missing.insert(step.from) }
            missing.insert(step.to)
        }
        guard !missing.isEmpty else { return loaded }
        let rows = try connection.run(AudienceStore.trees(missing, in: environment))
        for (digest, nodes) in try rows.decode(UUID.self, Bytea.self) {
            let tree = NodeDigests(bytes: nodes.bytes)
            loaded[digest] = tree
            trees.insert(tree, digest)
        }
        return loaded
    }

    /// The difference of each step; see `difference`.
    private typealias Differences = [AudienceRule.Step: NodeDigests.Difference?]

    /// - Returns: `nil` if a tree was deleted meanwhile, because a catalogue or a person got another one.
    private static func difference(
        _ step: AudienceRule.Step, _ trees: [UUID: NodeDigests]
    ) -> NodeDigests.Difference? {
        guard let old = trees[step.from], let new = trees[step.to] else { return nil }
        return old.difference(to: new)
    }

    /// Fills a new catalogue without people.
    private mutating func create(
        _ catalogue: UUID, _ tree: UUID, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws {
        let path = RealmPath.catalogue(catalogue)
        guard let realm = try directory.id(of: path, in: environment, create: true, on: &connection) else { return }
        var batch = WriteBatch(environment: environment)
        let nodes = try connection.run(AudienceStore.nodes(of: tree, in: environment))
        for (id, fields) in try nodes.decode(UUID.self, CanonicalJSON.self) {
            batch.put(ObjectKey(realm: realm, kind: .reportingTreeNode, id: id), fields, decision: 0)
        }
        batch.expect(AudienceStore.expect([(catalogue, tree, 0)], isThere: false, in: environment))
        batch.append(AudienceStore.hold([(catalogue, tree, 0)], in: environment))
        _ = try batch.commit(on: &connection)
    }

    // MARK: Changing and moving

    /// - Returns: The number of units with a conflict.
    private mutating func move(
        _ plan: AudienceRule.Plan, _ held: [UUID: UUID], _ environment: EnvironmentID,
        _ connection: inout Connection
    ) throws -> Int {
        let people = try people(of: plan.moved, environment, &connection)
        var remaining = plan.units()[...]
        var missedCount = 0
        while !remaining.isEmpty {
            var units: [AudienceRule.Plan.Unit] = []
            var count = 0
            while let unit = remaining.first {
                let unitCount = unit.moved.keys.reduce(unit.changed.count) { $0 + (people[$1]?.count ?? 0) }
                guard units.isEmpty || count + unitCount <= Self.countMax else { break }
                units.append(unit)
                count += unitCount
                remaining = remaining.dropFirst()
            }
            let trees = try trees(of: units.flatMap(\.changed.values), environment, &connection)
            let differences = Dictionary(
                units.flatMap(\.changed.values).map { ($0, Self.difference($0, trees)) }
            ) { $1 }
            var next: [AudienceRule.Plan.Unit] = []
            var nodeCount = 0
            for unit in units {
                let unitCount = unit.changed.values.reduce(0) { $0 + (differences[$1]??.count ?? 0) }
                if !next.isEmpty, nodeCount + unitCount > Self.nodesMax {
                    missedCount += try execute(next, differences, people, held, environment, &connection)
                    (next, nodeCount) = ([], 0)
                }
                next.append(unit)
                nodeCount += unitCount
            }
            missedCount += try execute(next, differences, people, held, environment, &connection)
        }
        return missedCount
    }

    /// Returns the e-mail addresses of moved people only.
    private func people(
        of moved: [AudienceRule.Share: UUID], _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> [AudienceRule.Share: [String]] {
        if moved.isEmpty { return [:] }
        var people: [AudienceRule.Share: [String]] = [:]
        let rows = try connection.run(AudienceStore.people(of: moved.keys, in: environment))
        for (email, catalogue, tree) in try rows.decode(String.self, UUID?.self, UUID.self) {
            let share = AudienceRule.Share(catalogue: catalogue, tree: tree)
            if moved[share] != nil { people[share, default: []].append(email) }
        }
        return people
    }

    private mutating func execute(
        _ units: [AudienceRule.Plan.Unit], _ differences: Differences, _ people: [AudienceRule.Share: [String]],
        _ held: [UUID: UUID], _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> Int {
        var batch = WriteBatch(environment: environment)
        var changed: [(id: UUID, step: AudienceRule.Step, decision: Int)] = []
        var moved: [(email: String, share: AudienceRule.Share, catalogue: UUID, decision: Int)] = []
        var expected: [(id: UUID, tree: UUID, decision: Int)] = []
        for (decision, unit) in units.enumerated() {
            changed += unit.changed.map { ($0.key, $0.value, decision) }
            for (share, target) in unit.moved {
                moved += (people[share] ?? []).map { ($0, share, target, decision) }
            }
            // The plan was made with these trees.
            let targets = Set(unit.changed.keys).union(unit.moved.values)
            expected += targets.compactMap { id in held[id].map { (id, $0, decision) } }
        }
        let becoming = changed.map { (id: $0.id, tree: $0.step.to, decision: $0.decision) }
        batch.expect(AudienceStore.expect(expected, isThere: true, in: environment))
        if !moved.isEmpty {
            batch.expect(
                AudienceStore.expect(moved.map { ($0.email, $0.share, $0.decision) }, in: environment))
            batch.append(
                AudienceStore.assign(moved.map { ($0.email, $0.catalogue, $0.decision) }, in: environment))
        }
        batch.expect(AudienceStore.expectNoOthers(in: becoming, except: moved.map(\.email), environment))
        // People first: devices of people who leave a catalogue are notified before its new nodes are published.
        let paths = try moved.map { try RealmPath.user($0.email) }
        let realms = try directory.ids(of: paths, in: environment, create: true, on: &connection)
        let keys = zip(moved, paths).map { move, path in
            realms[path].map { ObjectKey(realm: $0, kind: .user, id: RealmContents.userID(of: move.email)) }
        }
        let users = try RealmObject.byKey(
            connection.run(RealmObject.load(keys.compactMap(\.self), in: environment)))
        for (move, key) in zip(moved, keys) {
            guard let user = key.flatMap({ users[$0] }) else { continue }
            try batch.patch(
                user, CanonicalJSON(encoding: ["catalogue": move.catalogue.text]), decision: move.decision)
        }
        try write(changed, differences, to: &batch, environment, &connection)
        batch.append(AudienceStore.hold(becoming, in: environment))
        return try batch.commit(on: &connection).conflicts.count
    }

    /// Writes new and changed nodes of changing catalogues, and deletes removed ones.
    private mutating func write(
        _ changed: [(id: UUID, step: AudienceRule.Step, decision: Int)], _ differences: Differences,
        to batch: inout WriteBatch, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws {
        // Nodes of several catalogues are read once.
        var sources: [UUID: (tree: UUID, id: UUID)] = [:]
        for item in changed {
            guard let difference = differences[item.step] ?? nil else {
                batch.expect(AudienceStore.miss(item.decision))
                continue
            }
            for node in difference.put { sources[node.hash] = (item.step.to, node.id) }
        }
        var fields: [UUID: CanonicalJSON] = [:]
        let hashes = Dictionary(sources.map { (NodeKey(tree: $1.tree, id: $1.id), $0) }) { first, _ in first }
        for nodes in try connection.run(AudienceStore.nodes(Array(sources.values), in: environment)) {
            for (tree, id, json) in try nodes.decode(UUID.self, UUID.self, CanonicalJSON.self) {
                if let hash = hashes[NodeKey(tree: tree, id: id)] { fields[hash] = json }
            }
        }
        let paths = changed.map { RealmPath.catalogue($0.id) }
        let realms = try directory.ids(of: paths, in: environment, create: true, on: &connection)
        for (index, item) in changed.enumerated() {
            guard let realm = realms[paths[index]], let difference = differences[item.step] ?? nil else {
                continue
            }
            for node in difference.put {
                guard let fields = fields[node.hash] else {
                    batch.expect(AudienceStore.miss(item.decision))
                    break
                }
                let key = ObjectKey(realm: realm, kind: .reportingTreeNode, id: node.id)
                batch.put(key, fields, decision: item.decision)
            }
            for id in difference.gone {
                batch.delete(ObjectKey(realm: realm, kind: .reportingTreeNode, id: id), decision: item.decision)
            }
        }
    }

    private struct NodeKey: Hashable {
        let tree: UUID
        let id: UUID
    }

    // MARK: Deletion

    /// Deletes catalogues without people.
    private mutating func abandon(
        _ abandoned: Set<UUID>, _ held: [UUID: UUID], _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> Int {
        var missedCount = 0
        for catalogue in abandoned.sorted() {
            guard let tree = held[catalogue],
                let realm = try directory.id(
                    of: .catalogue(catalogue), in: environment, create: true, on: &connection)
            else { continue }
            var batch = WriteBatch(environment: environment)
            let rows = try connection.run(AudienceStore.trees([tree], in: environment))
            for (_, nodes) in try rows.decode(UUID.self, Bytea.self) {
                for id in NodeDigests(bytes: nodes.bytes).ids {
                    batch.delete(ObjectKey(realm: realm, kind: .reportingTreeNode, id: id), decision: 0)
                }
            }
            batch.expect(AudienceStore.expect([(catalogue, tree, 0)], isThere: true, in: environment))
            batch.expect(AudienceStore.expectEmpty(catalogue, decision: 0, environment))
            batch.append(AudienceStore.delete(catalogue, decision: 0, in: environment))
            missedCount += try batch.commit(on: &connection).conflicts.count
        }
        return missedCount
    }

    /// Deletes unused trees under the lock of the environment's counter, as all writes that depend on a tree.
    package func removeUnusedTrees(_ environment: EnvironmentID, on connection: inout Connection) throws {
        var batch = WriteBatch(environment: environment)
        batch.append(AudienceStore.deleteUnusedTrees(in: environment))
        _ = try batch.commit(on: &connection)
    }
}

extension AudienceRule.Group {
    init(_ row: Row) throws(PostgresError) {
        let (catalogue, tree, count, readAt, changedAt, hasUnread) = try row.decode(
            UUID?.self, UUID.self, Int64.self, Timestamp.self, Timestamp.self, Bool.self)
        self.init(
            share: AudienceRule.Share(catalogue: catalogue, tree: tree), count: Int(count), readAt: readAt,
            changedAt: changedAt, hasUnread: hasUnread)
    }
}

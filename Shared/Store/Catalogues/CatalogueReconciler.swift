package import Essentials
import FoundationEssentials
package import Logging
package import Model
import ObjectStore
package import Postgres

/// Sees to it that each person's catalogue holds what the person may report on, as it was last read: carries out what
/// `AudienceRule` plans. Whatever interrupts it, the next time goes on from what is stored.
package struct CatalogueReconciler {
    /// Changes of catalogues and moves of people in one transaction, unless more of them belong together.
    package static let countMax = 200
    /// Nodes written in one transaction, unless a single catalogue changes by more.
    static let nodesMax = 4_000

    private var directory = RealmDirectory()
    private let logger: Logger
    private var known = KnownTrees()

    package init(logger: Logger) { self.logger = logger }

    /// - Parameter since: When the last full comparison began. What was first read before it waits no longer.
    /// - Returns: Whether everything is as it should be; false when people were read anew meanwhile.
    package mutating func settle(
        _ environment: EnvironmentID, since: Timestamp, on connection: inout Connection
    ) throws -> Bool {
        let answers = try connection.run([
            AudienceStore.groups(in: environment), AudienceStore.catalogues(in: environment),
        ])
        var groups: [AudienceRule.Group] = []
        groups.reserveCapacity(answers[0].count)
        for row in answers[0] { groups.append(try AudienceRule.Group(row)) }
        let catalogues = Dictionary(try answers[1].decode(UUID.self, UUID.self)) { first, _ in first }
        let unsure = AudienceRule.unsure(groups, catalogues: catalogues, since: since)
        let waiting = try unsure.unread.union(gains(among: unsure.maybeLate, environment, &connection))
        let plan = AudienceRule.plan(groups, catalogues: catalogues, waiting: waiting)
        if plan.isEmpty { return true }
        for (catalogue, tree) in plan.created.sorted(by: { $0.key < $1.key }) {
            try create(catalogue, tree, environment, &connection)
        }
        let missedCount =
            try move(plan, catalogues.merging(plan.created) { $1 }, environment, &connection)
            + (try abandon(plan.abandoned, catalogues, environment, &connection))
        logger.notice(
            "catalogues follow what people may report on",
            metadata: [
                "environment": "\(environment)", "created": "\(plan.created.count)",
                "changed": "\(plan.changed.count)", "moved": "\(plan.moved.count)",
                "abandoned": "\(plan.abandoned.count)", "missed": "\(missedCount)",
            ])
        return missedCount == 0
    }

    /// The steps that take nothing away and change nothing.
    private mutating func gains(
        among steps: Set<AudienceRule.Step>, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> Set<AudienceRule.Step> {
        var gains: Set<AudienceRule.Step> = []
        // A few at a time, since a tree may be large.
        var rest = Array(steps)[...]
        while !rest.isEmpty {
            let some = rest.prefix(Self.countMax)
            rest = rest.dropFirst(some.count)
            let trees = try trees(of: some, environment, &connection)
            for step in some where Self.difference(step, trees)?.isGain == true { gains.insert(step) }
        }
        return gains
    }

    private mutating func trees(
        of steps: some Sequence<AudienceRule.Step>, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> [UUID: NodeDigests] {
        var trees: [UUID: NodeDigests] = [:]
        // One that is to be held may have been forgotten: whether it is there, the database says each time.
        var missing: Set<UUID> = []
        for step in steps {
            trees[step.from] = known[step.from]
            if trees[step.from] == nil { missing.insert(step.from) }
            missing.insert(step.to)
        }
        guard !missing.isEmpty else { return trees }
        let rows = try connection.run(AudienceStore.trees(missing, in: environment))
        for (digest, nodes) in try rows.decode(UUID.self, Bytea.self) {
            let tree = NodeDigests(bytes: nodes.bytes)
            trees[digest] = tree
            known.remember(tree, digest)
        }
        return trees
    }

    /// Each step's; see `difference`.
    private typealias Differences = [AudienceRule.Step: NodeDigests.Difference?]

    /// - Returns: `nil` when a tree was forgotten meanwhile: the catalogue, or somebody, has another one then.
    private static func difference(
        _ step: AudienceRule.Step, _ trees: [UUID: NodeDigests]
    ) -> NodeDigests.Difference? {
        guard let old = trees[step.from], let new = trees[step.to] else { return nil }
        return old.difference(to: new)
    }

    /// Fills a new catalogue, which nobody has yet.
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
        batch.also(AudienceStore.hold([(catalogue, tree, 0)], in: environment))
        _ = try batch.commit(on: &connection)
    }

    // MARK: Changing and moving

    /// - Returns: How many parts of the plan could not be done.
    private mutating func move(
        _ plan: AudienceRule.Plan, _ held: [UUID: UUID], _ environment: EnvironmentID,
        _ connection: inout Connection
    ) throws -> Int {
        let people = try people(of: plan.moved, environment, &connection)
        var rest = plan.parts()[...]
        var missedCount = 0
        while !rest.isEmpty {
            var some: [AudienceRule.Plan.Part] = []
            var count = 0
            while let part = rest.first {
                let partCount = part.moved.keys.reduce(part.changed.count) { $0 + (people[$1]?.count ?? 0) }
                guard some.isEmpty || count + partCount <= Self.countMax else { break }
                some.append(part)
                count += partCount
                rest = rest.dropFirst()
            }
            let trees = try trees(of: some.flatMap(\.changed.values), environment, &connection)
            let differences = Dictionary(some.flatMap(\.changed.values).map { ($0, Self.difference($0, trees)) }) { $1 }
            var next: [AudienceRule.Plan.Part] = []
            var nodeCount = 0
            for part in some {
                let partCount = part.changed.values.reduce(0) { $0 + (differences[$1]??.count ?? 0) }
                if !next.isEmpty, nodeCount + partCount > Self.nodesMax {
                    missedCount += try carryOut(next, differences, people, held, environment, &connection)
                    (next, nodeCount) = ([], 0)
                }
                next.append(part)
                nodeCount += partCount
            }
            missedCount += try carryOut(next, differences, people, held, environment, &connection)
        }
        return missedCount
    }

    /// The e-mail addresses of who is moved: of all the people, only theirs are read.
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

    private mutating func carryOut(
        _ parts: [AudienceRule.Plan.Part], _ differences: Differences, _ people: [AudienceRule.Share: [String]],
        _ held: [UUID: UUID], _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> Int {
        var batch = WriteBatch(environment: environment)
        var changed: [(id: UUID, step: AudienceRule.Step, decision: Int)] = []
        var moved: [(email: String, share: AudienceRule.Share, catalogue: UUID, decision: Int)] = []
        var known: [(id: UUID, tree: UUID, decision: Int)] = []
        for (decision, part) in parts.enumerated() {
            changed += part.changed.map { ($0.key, $0.value, decision) }
            for (share, target) in part.moved {
                moved += (people[share] ?? []).map { ($0, share, target, decision) }
            }
            // What they hold is what the plan was made from.
            let targets = Set(part.changed.keys).union(part.moved.values)
            known += targets.compactMap { id in held[id].map { (id, $0, decision) } }
        }
        let becoming = changed.map { (id: $0.id, tree: $0.step.to, decision: $0.decision) }
        batch.expect(AudienceStore.expect(known, isThere: true, in: environment))
        if !moved.isEmpty {
            batch.expect(
                AudienceStore.expect(moved.map { ($0.email, $0.share, $0.decision) }, in: environment))
            batch.also(
                AudienceStore.place(moved.map { ($0.email, $0.catalogue, $0.decision) }, in: environment))
        }
        batch.expect(AudienceStore.expectNobodyElse(in: becoming, but: moved.map(\.email), environment))
        // People first: who leaves a catalogue learns of it before what is new in it.
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
        batch.also(AudienceStore.hold(becoming, in: environment))
        return try batch.commit(on: &connection).missed.count
    }

    /// What is new, or says something else, in catalogues that change; and what is no longer in them.
    private mutating func write(
        _ changed: [(id: UUID, step: AudienceRule.Step, decision: Int)], _ differences: Differences,
        to batch: inout WriteBatch, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws {
        // What many catalogues get is read once.
        var sources: [UUID: (tree: UUID, id: UUID)] = [:]
        for item in changed {
            guard let difference = differences[item.step] ?? nil else {
                batch.expect(AudienceStore.miss(item.decision))
                continue
            }
            for node in difference.put { sources[node.hash] = (item.step.to, node.id) }
        }
        var fields: [UUID: CanonicalJSON] = [:]
        let hashes = Dictionary(sources.map { (Place(tree: $1.tree, id: $1.id), $0) }) { first, _ in first }
        for nodes in try connection.run(AudienceStore.nodes(Array(sources.values), in: environment)) {
            for (tree, id, json) in try nodes.decode(UUID.self, UUID.self, CanonicalJSON.self) {
                if let hash = hashes[Place(tree: tree, id: id)] { fields[hash] = json }
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

    private struct Place: Hashable {
        let tree: UUID
        let id: UUID
    }

    // MARK: Giving up

    /// Empties catalogues that nobody has.
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
            batch.expect(AudienceStore.expectNobody(in: catalogue, decision: 0, environment))
            batch.also(AudienceStore.giveUp(catalogue, decision: 0, in: environment))
            missedCount += try batch.commit(on: &connection).missed.count
        }
        return missedCount
    }

    /// Forgets the trees that nobody has any more, under the counter's lock, as everything that counts on a tree.
    package func forgetTrees(_ environment: EnvironmentID, on connection: inout Connection) throws {
        var batch = WriteBatch(environment: environment)
        batch.also(AudienceStore.forgetTrees(in: environment))
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

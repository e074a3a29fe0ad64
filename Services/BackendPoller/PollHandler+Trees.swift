import Backends
import FoundationEssentials
import Model
import Postgres
import Realms

extension PollHandler {
    /// What a person may report on: the nodes of their catalogue, contexts and templates, as far as they differ.
    ///
    /// A catalogue is named by the nodes in it: who gets or loses a node moves to another one, which is written in the
    /// same transaction, so nobody ever holds a node that is not theirs. In a catalogue only what nodes say changes.
    mutating func compareTree(
        _ contents: RealmContents, own: Int32, _ decision: Int, _ environment: EnvironmentID,
        _ writes: inout PollWrites, _ connection: inout Connection
    ) throws {
        let path = RealmPath.catalogue(contents.catalogue)
        guard let catalogue = try directory.id(of: path, in: environment, create: true, on: &connection) else { return }
        let tree = try KnownTrees.Tree(contents.data.nodes, as: catalogue, in: environment)
        let isKnown = trees.isKnown(tree)
        let decoder = JSONDecoder()
        let answers = try connection.run(
            [RealmObject.load(kinds: [.user, .reportingContext, .reportingTemplate], realm: own, in: environment)]
                + (isKnown ? [] : [RealmObject.load(kinds: [.reportingTreeNode], realm: catalogue, in: environment)]))
        var stored = StoredTree()
        for answer in answers {
            for object in try RealmObject.byKey(answer).values { stored.add(object, decoder) }
        }
        if !isKnown {
            if stored.nodes == contents.data.nodesByID { trees.remember(tree) }
            // Another person's poll may count on the same nodes: they are written whatever misses.
            try write(
                stored.nodes, contents.data.nodes, catalogue, .reportingTreeNode, PollWrites.unconditional, &writes)
        }
        try write(stored.contexts, contents.data.contexts, own, .reportingContext, decision, &writes)
        try write(stored.templates, contents.data.templates, own, .reportingTemplate, decision, &writes)
        let id = RealmContents.userID(of: contents.user.email)
        guard let user = stored.users[id] else { return try writes.put(own, .user, id, contents.user, decision) }
        var wanted = user
        wanted.catalogue = contents.user.catalogue
        wanted.reportingTemplates = contents.user.reportingTemplates
        if wanted != user { try writes.put(own, .user, id, wanted, decision) }
    }

    private func write<Fields: Codable & Equatable>(
        _ stored: [UUID: Fields], _ wanted: [Identified<Fields>], _ realm: Int32, _ kind: Kind, _ decision: Int,
        _ writes: inout PollWrites
    ) throws {
        let differences = PollRule.Differences(stored: stored, wanted: wanted)
        for item in differences.put { try writes.put(realm, kind, item.id, item.fields, decision) }
        for id in differences.gone { writes.delete(realm, kind, id, decision) }
    }
}

/// What is stored of a person's choices. An object that does not decode is written anew.
private struct StoredTree {
    var users: [UUID: User] = [:]
    var nodes: [UUID: ReportingTreeNode] = [:]
    var contexts: [UUID: ReportingContext] = [:]
    var templates: [UUID: ReportingTemplate] = [:]

    mutating func add(_ object: RealmObject, _ decoder: JSONDecoder) {
        let id = object.key.id
        switch object.key.kind {
        case .user: users[id] = try? object.decoded(as: User.self, by: decoder)
        case .reportingTreeNode: nodes[id] = try? object.decoded(as: ReportingTreeNode.self, by: decoder)
        case .reportingContext: contexts[id] = try? object.decoded(as: ReportingContext.self, by: decoder)
        case .reportingTemplate: templates[id] = try? object.decoded(as: ReportingTemplate.self, by: decoder)
        case .realms, .timeEntry, .timeEntryStatus, .person, .personLookup, .team, .membership, .location, .fieldTask,
            .share, .poll, .seenRecord:
            break
        }
    }
}

extension ReportingData {
    fileprivate var nodesByID: [UUID: ReportingTreeNode] {
        Dictionary(nodes.map { ($0.id, $0.fields) }) { first, _ in first }
    }
}

/// Catalogues that were found to be as they should a short while ago: the people of one audience have the same, and
/// comparing it for each of them would read it as often.
///
/// One that differed is not remembered: whether it was written is known only when it is read again.
struct KnownTrees {
    fileprivate struct Name: Hashable {
        let environment: EnvironmentID
        let catalogue: Int32
    }

    /// A catalogue with the nodes it should have.
    struct Tree {
        fileprivate let name: Name
        fileprivate let digest: UUID

        init(
            _ nodes: [Identified<ReportingTreeNode>], as catalogue: Int32, in environment: EnvironmentID
        ) throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            let text = try nodes.map { $0.id.text + String(decoding: try encoder.encode($0.fields), as: UTF8.self) }
            digest = UUID(name: text.sorted().joined(), in: RealmContents.catalogue(of: []))
            name = Name(environment: environment, catalogue: catalogue)
        }
    }

    /// After that it is compared again, since somebody else may have written to it.
    static let ageMax = Duration.seconds(60)
    static let countMax = 1_000

    private var trees: [Name: (digest: UUID, since: ContinuousClock.Instant)] = [:]

    init() {}

    func isKnown(_ tree: Tree) -> Bool {
        trees[tree.name].map { $0.digest == tree.digest && .now - $0.since < Self.ageMax } ?? false
    }

    mutating func remember(_ tree: Tree) {
        if trees.count >= Self.countMax { trees = [:] }
        trees[tree.name] = (tree.digest, .now)
    }
}

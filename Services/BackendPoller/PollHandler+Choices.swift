import Audiences
import Backends
import FoundationEssentials
import Model
import Postgres
import Realms

extension PollHandler {
    /// What a person may report on, as a poll read it.
    struct Reading {
        let tree: NodeTree
        /// The nodes of a tree that is not stored yet.
        let nodes: [Identified<ReportingTreeNode>]?
        let email: String
        let readAt: Timestamp
        /// Whether there is no `User` object that could name the person's catalogue.
        let isUnplaced: Bool
        let decision: Int
    }

    /// Contexts and templates, as far as they differ. The nodes are compared by their digest, and reach catalogues when
    /// everybody has been read; see `AudienceKeeper`.
    func compareChoices(
        _ contents: RealmContents, _ stored: StoredPerson, _ decision: Int, _ writes: inout PollWrites
    ) throws {
        try write(stored.contexts, contents.data.contexts, stored.own, .reportingContext, decision, &writes)
        try write(stored.templates, contents.data.templates, stored.own, .reportingTemplate, decision, &writes)
        let id = RealmContents.userID(of: contents.user.email)
        guard let user = stored.user else { return try writes.put(stored.own, .user, id, contents.user, decision) }
        // The catalogue is the keeper's to change.
        let templates = contents.user.reportingTemplates
        if user.reportingTemplates != templates {
            try writes.patch(stored.own, .user, id, ["reportingTemplates": templates], decision)
        }
    }

    private func write<Fields: Codable & Equatable>(
        _ stored: [UUID: Fields], _ wanted: [Identified<Fields>], _ realm: Int32, _ kind: Kind, _ decision: Int,
        _ writes: inout PollWrites
    ) throws {
        let differences = PollRule.Differences(stored: stored, wanted: wanted)
        for item in differences.put { try writes.put(realm, kind, item.id, item.fields, decision) }
        for id in differences.gone { writes.delete(realm, kind, id, decision) }
    }

    /// Nodes that entries select and that can no longer be chosen: the person's own realm keeps a copy, so that the
    /// entries go on saying what they are about.
    mutating func compareRetired(
        _ tree: NodeTree, _ stored: StoredPerson, _ decision: Int, _ environment: EnvironmentID,
        _ writes: inout PollWrites, _ connection: inout Connection
    ) throws {
        let retired = stored.selectedNodes.subtracting(tree.digests.ids)
        for id in stored.retired.keys where !retired.contains(id) {
            writes.delete(stored.own, .reportingTreeNode, id, decision)
        }
        let missing = retired.subtracting(stored.retired.keys)
        guard !missing.isEmpty, let catalogue = stored.user?.catalogue,
            let realm = try directory.id(of: .catalogue(catalogue), in: environment, create: false, on: &connection)
        else { return }
        let keys = missing.map { ObjectKey(realm: realm, kind: .reportingTreeNode, id: $0) }
        for row in try connection.run(RealmObject.load(keys, in: environment)) {
            guard let object = try RealmObject(row), let fields = object.fields else { continue }
            writes.put(stored.own, .reportingTreeNode, object.key.id, json: fields, decision)
        }
    }

    /// Writes down what was read, and the trees that nobody had before.
    func remember(_ readings: [Reading], in environment: EnvironmentID, _ batch: inout WriteBatch) throws {
        if readings.isEmpty { return }
        var stored: Set<UUID> = []
        for reading in readings {
            guard let nodes = reading.nodes, stored.insert(reading.tree.digest).inserted else { continue }
            batch.also(try AudienceStore.store(reading.tree, nodes: nodes, in: environment))
        }
        let known = readings.filter { $0.nodes == nil }
        if !known.isEmpty {
            batch.expect(AudienceStore.expectStored(known.map { ($0.tree.digest, $0.decision) }, in: environment))
        }
        batch.also(
            AudienceStore.remember(
                readings.map {
                    AudienceStore.Reading(
                        email: $0.email, tree: $0.tree.digest, readAt: $0.readAt, isUnplaced: $0.isUnplaced,
                        decision: $0.decision)
                }, in: environment))
    }
}

/// What is stored of a polled person. An object that does not decode is written anew.
struct StoredPerson {
    let own: Int32
    let seenRealm: Int32
    var user: User?
    var contexts: [UUID: ReportingContext] = [:]
    var templates: [UUID: ReportingTemplate] = [:]
    /// Copies of nodes that can no longer be chosen.
    var retired: [UUID: ReportingTreeNode] = [:]
    var seen: [UUID: SeenRecord] = [:]
    /// Whether the tree that was read is stored.
    var isTreeKnown = false
    /// Nothing here is newer than this position, unless it was written while it was loaded.
    private(set) var newest: Int64 = 0
    private var entries: [UUID: (entry: TimeEntry, position: Int64, editPosition: Int64)] = [:]

    init(
        _ own: Int32, _ seen: Int32, _ tree: NodeTree, _ environment: EnvironmentID, _ decoder: JSONDecoder,
        _ connection: inout Connection
    ) throws {
        (self.own, seenRealm) = (own, seen)
        let answers = try connection.run([
            Self.newest(own: own, seen: seen, in: environment),
            RealmObject.load(kinds: Self.kinds, realm: own, in: environment),
            RealmObject.load(kinds: [.seenRecord], realm: seen, in: environment),
            AudienceStore.stored([tree.digest], in: environment),
        ])
        newest = try answers[0][0].value(0)
        for answer in answers[1...2] {
            for row in answer {
                if let object = try RealmObject(row) { add(object, decoder) }
            }
        }
        isTreeKnown = answers[3].count > 0
    }

    private static let kinds: [Kind] = [.user, .reportingContext, .reportingTemplate, .reportingTreeNode, .timeEntry]

    /// The newest position of what is stored, tombstones too. Rows: position.
    static func newest(own: Int32, seen: Int32, in environment: EnvironmentID) -> Statement {
        """
        SELECT coalesce(max(o.position), 0) FROM unnest(\([own, seen])) AS r(id) CROSS JOIN LATERAL (
            SELECT position FROM realm.object
            WHERE environment_id = \(environment.rawValue) AND realm_id = r.id
                AND kind = ANY (\((kinds + [.seenRecord]).map(\.rawValue)))
            OFFSET 0
        ) o
        """
    }

    private mutating func add(_ object: RealmObject, _ decoder: JSONDecoder) {
        let id = object.key.id
        switch object.key.kind {
        case .user: user = try? object.decoded(as: User.self, by: decoder)
        case .reportingContext: contexts[id] = try? object.decoded(as: ReportingContext.self, by: decoder)
        case .reportingTemplate: templates[id] = try? object.decoded(as: ReportingTemplate.self, by: decoder)
        case .reportingTreeNode: retired[id] = try? object.decoded(as: ReportingTreeNode.self, by: decoder)
        // One that does not decode waits for a person in the submitter.
        case .timeEntry:
            if let entry = try? object.decoded(as: TimeEntry.self, by: decoder) {
                entries[id] = (entry, object.position, object.editPosition)
            }
        case .seenRecord: seen[id] = try? object.decoded(as: SeenRecord.self, by: decoder)
        case .realms, .timeEntryStatus, .person, .personLookup, .team, .membership, .location, .fieldTask, .share,
            .poll:
            break
        }
    }

    /// The entries that nobody has changed since a poll was written, and so since it was read for.
    func entries(before position: Int64) -> [UUID: TimeEntry] {
        entries.filter { $0.value.position < position }.mapValues(\.entry)
    }

    /// Entries that were made of a record when what it is about was not in the catalogue yet, and now may be.
    func unresolved(in data: ReportingData) -> Set<UUID> {
        let open = entries.filter { $0.value.editPosition == 0 && $0.value.entry.reporting.isEmpty }
        guard !open.isEmpty else { return [] }
        let lookup = ReportingData.Lookup(data)
        return Set(
            open.keys.filter { id in
                guard let references = seen[id]?.references, !references.isEmpty else { return false }
                return !lookup.selections(for: references).isEmpty
            })
    }

    /// The nodes that entries select.
    var selectedNodes: Set<UUID> { Set(entries.values.lazy.flatMap(\.entry.reporting).map(\.node)) }
}

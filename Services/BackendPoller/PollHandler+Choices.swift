import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

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
    /// everybody has been read; see `CatalogueReconciler`. Contexts and templates whose nodes are not there yet wait
    /// for them: an entry that the person creates meanwhile would be invalid. If a row of the back end's lists cannot
    /// be read, nothing is deleted, since it may be made of that row.
    ///
    /// - Returns: Whether none waits. Otherwise the person is to be compared by the next run.
    func compareChoices(
        _ contents: RealmContents, _ tree: NodeTree, _ stored: StoredPerson, _ decision: Int,
        _ environment: EnvironmentID, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Bool {
        let realm = stored.own
        var kept = stored.others
        if !contents.data.unreadable.isEmpty { kept.formUnion(Array(stored.contexts.keys) + stored.templates.keys) }
        let waiting = try waiting(contents.data, tree, stored, environment, &connection)
        try write(
            stored.contexts, contents.data.contexts, but: kept, waiting, realm, .reportingContext, decision, &writes)
        try write(
            stored.templates, contents.data.templates, but: kept, waiting, realm, .reportingTemplate, decision,
            &writes)
        let id = RealmContents.userID(of: contents.user.email)
        guard let user = stored.user, let object = stored.userObject else {
            try writes.put(stored.own, .user, id, contents.user, decision)
            return waiting.isEmpty
        }
        // The catalogue is the keeper's to change. A template that is kept is offered as long as it is there.
        let own = contents.user.reportingTemplates.filter { !waiting.contains($0) || stored.templates[$0] != nil }
        let templates =
            own
            + user.reportingTemplates.filter {
                kept.contains($0) && stored.templates[$0] != nil && !own.contains($0)
            }
        if user.reportingTemplates != templates {
            try writes.patch(object, ["reportingTemplates": templates.map(\.text)], decision)
        }
        return waiting.isEmpty
    }

    /// Contexts that differ and lead to nodes which the person's catalogue does not hold yet, and templates that differ
    /// and need a new one of them.
    private func waiting(
        _ data: ReportingData, _ tree: NodeTree, _ stored: StoredPerson, _ environment: EnvironmentID,
        _ connection: inout Connection
    ) throws -> Set<UUID> {
        let changed = data.contexts.filter { stored.contexts[$0.id] != $0.fields }
        guard !changed.isEmpty, let catalogue = stored.user?.catalogue,
            let (_, held) = try connection.run(AudienceStore.trees(of: [catalogue], in: environment)).first?.decode(
                UUID.self, UUID.self), held != tree.digest,
            let (_, nodes) = try connection.run(AudienceStore.trees([held], in: environment)).first?.decode(
                UUID.self, Bytea.self)
        else { return [] }
        let missing = Set(tree.digests.ids).subtracting(NodeDigests(bytes: nodes.bytes).ids)
        let contexts = changed.filter { !missing.isDisjoint(with: $0.fields.nodes) }.map(\.id)
        let new = Set(contexts.filter { stored.contexts[$0] == nil })
        let templates = data.templates.filter {
            stored.templates[$0.id] != $0.fields && !new.isDisjoint(with: $0.fields.reportingContexts)
        }
        return Set(contexts + templates.map(\.id))
    }

    private func write<Fields: Codable & Equatable>(
        _ stored: [UUID: Fields], _ wanted: [Identified<Fields>], but others: Set<UUID>, _ waiting: Set<UUID>,
        _ realm: Int32, _ kind: Kind, _ decision: Int, _ writes: inout PollWrites
    ) throws {
        let differences = PollRule.Differences(stored: stored, wanted: wanted)
        for item in differences.put where !waiting.contains(item.id) {
            try writes.put(realm, kind, item.id, item.fields, decision)
        }
        for id in differences.gone where !others.contains(id) { writes.delete(realm, kind, id, decision) }
    }

    /// Nodes that entries select and that can no longer be chosen: the person's own realm keeps a copy, so that the
    /// entries go on saying what they are about.
    mutating func compareRetired(
        _ tree: NodeTree, _ stored: StoredPerson, _ decision: Int, _ environment: EnvironmentID,
        _ writes: inout PollWrites, _ connection: inout Connection
    ) throws {
        let retired = stored.selectedNodes.subtracting(tree.digests.ids)
        for id in stored.retired.keys where !retired.contains(id) && !stored.others.contains(id) {
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

extension ReportingContext {
    /// The nodes that it leads to.
    fileprivate var nodes: [UUID] {
        preselected + sections.flatMap { ($0.items ?? []) + [$0.rootNode].compactMap(\.self) }
    }
}

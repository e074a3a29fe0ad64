import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

extension PollHandler {
    /// A person's reporting data as read by a poll.
    struct ObservedChoices {
        let tree: NodeTree
        /// The nodes of a tree that is not stored yet.
        let nodes: [Identified<ReportingTreeNode>]?
        let email: String
        let readAt: Timestamp
        /// Whether the person has no `User` object that could refer to a catalogue.
        let removesCatalogue: Bool
        let decision: Int
    }

    /// Writes differing contexts and templates.
    ///
    /// Nodes are compared by their digest, and `CatalogueReconciler` writes them after all people have been read.
    /// Contexts and templates with nodes that are not in the catalogue yet are postponed: an entry that the person
    /// creates meanwhile would be invalid. If a row of the back end's lists is unreadable, nothing is deleted, because
    /// it may originate from that row.
    ///
    /// - Returns: Whether nothing is postponed. Otherwise the next run must compare the person.
    func compareChoices(
        _ contents: RealmContents, _ tree: NodeTree, _ stored: StoredPerson, _ decision: Int,
        _ environment: EnvironmentID, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Bool {
        let realm = stored.own
        var excluded = stored.others
        if !contents.data.unreadable.isEmpty {
            excluded.formUnion(Array(stored.contexts.keys) + stored.templates.keys)
        }
        let postponed = try postponed(contents.data, tree, stored, environment, &connection)
        try write(
            stored.contexts, contents.data.contexts, except: excluded, postponed, realm, .reportingContext, decision,
            &writes)
        try write(
            stored.templates, contents.data.templates, except: excluded, postponed, realm, .reportingTemplate, decision,
            &writes)
        let id = RealmContents.userID(of: contents.user.email)
        guard let user = stored.user, let object = stored.userObject else {
            try writes.put(stored.own, .user, id, contents.user, decision)
            return postponed.isEmpty
        }
        // `CatalogueReconciler` writes the catalogue. A template that is not deleted stays offered.
        let own = contents.user.reportingTemplates.filter { !postponed.contains($0) || stored.templates[$0] != nil }
        let templates =
            own
            + user.reportingTemplates.filter {
                excluded.contains($0) && stored.templates[$0] != nil && !own.contains($0)
            }
        if user.reportingTemplates != templates {
            try writes.patch(object, ["reportingTemplates": templates.map(\.text)], decision)
        }
        return postponed.isEmpty
    }

    /// Returns differing contexts with nodes that are missing in the person's catalogue, and differing templates with
    /// such a new context.
    private func postponed(
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
        _ stored: [UUID: Fields], _ desired: [Identified<Fields>], except excluded: Set<UUID>, _ postponed: Set<UUID>,
        _ realm: Int32, _ kind: Kind, _ decision: Int, _ writes: inout PollWrites
    ) throws {
        let differences = PollRule.Differences(stored: stored, desired: desired)
        for item in differences.put where !postponed.contains(item.id) {
            try writes.put(realm, kind, item.id, item.fields, decision)
        }
        for id in differences.gone where !excluded.contains(id) { writes.delete(realm, kind, id, decision) }
    }

    /// Copies nodes that entries select and that can no longer be selected into the person's own realm, so that the
    /// entries stay readable.
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

    /// Records the people's trees, and stores new trees.
    func record(_ choices: [ObservedChoices], in environment: EnvironmentID, _ batch: inout WriteBatch) throws {
        if choices.isEmpty { return }
        var stored: Set<UUID> = []
        for item in choices {
            guard let nodes = item.nodes, stored.insert(item.tree.digest).inserted else { continue }
            batch.append(try AudienceStore.store(item.tree, nodes: nodes, in: environment))
        }
        let existing = choices.filter { $0.nodes == nil }
        if !existing.isEmpty {
            batch.expect(AudienceStore.expectStored(existing.map { ($0.tree.digest, $0.decision) }, in: environment))
        }
        batch.append(
            AudienceStore.remember(
                choices.map {
                    AudienceStore.Reading(
                        email: $0.email, tree: $0.tree.digest, readAt: $0.readAt, removesCatalogue: $0.removesCatalogue,
                        decision: $0.decision)
                }, in: environment))
    }
}

extension ReportingContext {
    /// The nodes that it refers to.
    fileprivate var nodes: [UUID] {
        preselected + sections.flatMap { ($0.items ?? []) + [$0.rootNode].compactMap(\.self) }
    }
}

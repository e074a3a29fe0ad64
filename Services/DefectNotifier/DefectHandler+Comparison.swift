import BackendConnections
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// People's mirrors of defects.
extension DefectHandler {
    /// Limit on objects removed in one transaction.
    private static let removedMax = 1_000

    /// Writes the mirrors that differ, except those written since the first page was requested: they may be newer than
    /// the page. The next poll covers them.
    ///
    /// - Returns: The defects that have a mirror now.
    @discardableResult func mirror(
        _ defects: [TrackedDefect], _ people: TrackerPeople, _ request: PageRequest, _ context: PollContext,
        _ writes: inout DefectWrites, _ connection: inout Connection
    ) throws -> Set<UUID> {
        // All rows of a record in a result set have its current state.
        let byID = Dictionary(defects.map { (context.tracker.defect($0.record), $0) }) { _, last in last }
        if byID.isEmpty { return [] }
        var current = try MirrorStore.realmsByDefect(
            connection.run(MirrorStore.keys(of: Array(byID.keys), in: context.environment)))
        // A person's login reads only what they may see. It proves nothing about other people's mirrors.
        if let own = request.own { current = current.mapValues { $0.intersection([own.person.realm]) } }
        let realms = people.realms
        let desired = byID.mapValues { MirrorRule.mirrors(of: $0, people: realms) }
        var mirrorKeys: [MirrorKey] = []
        for (id, mirrors) in desired {
            mirrorKeys += Set(mirrors.keys).union(current[id] ?? []).map { MirrorKey(defect: id, realm: $0) }
        }
        let objects = try RealmObject.byKey(
            connection.run(RealmObject.load(mirrorKeys.lazy.map(Self.objectKey), in: context.environment)))
        var added: [MirrorKey] = []
        var removed: [MirrorKey] = []
        for mirrorKey in mirrorKeys {
            let (key, object) = (Self.objectKey(mirrorKey), objects[Self.objectKey(mirrorKey)])
            guard object?.position ?? 0 <= request.startPosition, !writes.contains(key) else { continue }
            let mirror = desired[mirrorKey.defect]?[mirrorKey.realm]
            try write(mirror, over: object, key, context, &writes)
            switch (mirror != nil, current[mirrorKey.defect]?.contains(mirrorKey.realm) == true) {
            case (true, false): added.append(mirrorKey)
            case (false, true): removed.append(mirrorKey)
            case (true, true), (false, false): break
            }
        }
        if !added.isEmpty {
            writes.batch.append(MirrorStore.add(added, in: context.environment, decision: context.decision))
        }
        if !removed.isEmpty {
            writes.batch.append(MirrorStore.remove(removed, in: context.environment, decision: context.decision))
        }
        return Set(desired.filter { !$0.value.isEmpty }.keys)
    }

    /// Returns the owners and submitters of defects, limited to the person of the request if there is one.
    mutating func people(
        of defects: [TrackedDefect], _ request: PageRequest, _ environment: EnvironmentID,
        _ connection: inout Connection
    ) throws -> TrackerPeople {
        guard let own = request.own else {
            return try TrackerPeople(of: defects, in: environment, &directory, &connection)
        }
        // The query's filter selects one login name, except where it also selects records by id.
        return switch request.subset {
        case .all, .assigned: TrackerPeople(own.person, as: defects.compactMap(\.owner))
        case .reported where request.mirroredRecords.isEmpty:
            TrackerPeople(own.person, as: defects.compactMap(\.submitter))
        case .reported: TrackerPeople(own.person, as: request.loginNames)
        }
    }

    /// - Parameters:
    ///   - mirror: The desired content; `nil`: no mirror.
    ///   - object: The stored object, or its tombstone.
    private func write(
        _ mirror: Defect?, over object: RealmObject?, _ key: ObjectKey, _ context: PollContext,
        _ writes: inout DefectWrites
    ) throws {
        let position = object?.position ?? 0
        // A stored mirror that does not decode is rewritten.
        let stored = try? object?.decoded(as: Defect.self, by: decoder)
        switch MirrorRule.difference(stored: stored, exists: object?.isDeleted == false, desired: mirror) {
        case .put(let defect): try writes.put(key, at: position, defect, context.decision)
        case .delete: writes.delete(key, at: position, context.decision)
        case nil: break
        }
    }

    private static func objectKey(_ mirrorKey: MirrorKey) -> ObjectKey {
        ObjectKey(realm: mirrorKey.realm, kind: .defect, id: mirrorKey.defect)
    }

    /// Compares one page with the mirrors. After the last page, removes the mirrors of defects that no page contained,
    /// and the notices that are too old, also of people without new ones.
    mutating func compareMirrors(
        _ page: TrackerPage, _ request: PageRequest, _ context: PollContext, _ writes: inout DefectWrites,
        _ connection: inout Connection
    ) throws -> Disposition<PageRequest> {
        var next = request
        if !request.allPagesRead {
            let people = try people(of: page.defects, request, context.environment, &connection)
            next.presentDefects.formUnion(try mirror(page.defects, people, request, context, &writes, &connection))
            next.allRowsReadable = request.allRowsReadable && page.unreadable.isEmpty
            next.cursor = page.cursor
            if page.cursor == nil {
                // The last page's mirrors are written before obsolete ones are removed.
                next.allPagesRead = request.subset != .assigned
                next.subset = request.subset == .assigned ? .reported : request.subset
            }
            return .call(next, startBefore: .now + Self.startMax)
        }
        let allObsoleteRemoved =
            try !request.allRowsReadable || removeObsoleteMirrors(request, context, &writes, &connection)
        let allOldRemoved = try allObsoleteRemoved && removeOldNotices(context, &writes, &connection)
        return allObsoleteRemoved && allOldRemoved ? .finished : .call(next, startBefore: .now + Self.startMax)
    }

    /// - Returns: Whether all of them are removed.
    private func removeObsoleteMirrors(
        _ request: PageRequest, _ context: PollContext, _ writes: inout DefectWrites, _ connection: inout Connection
    ) throws -> Bool {
        let rows = try connection.run(
            MirrorStore.obsolete(
                except: request.presentDefects, in: context.own?.person.realm, through: request.startPosition,
                countMax: Self.removedMax, of: context.environment))
        var removed: [MirrorKey] = []
        for (defect, realm, position, isDeleted) in try rows.decode(UUID.self, Int32.self, Int64.self, Bool.self) {
            let mirrorKey = MirrorKey(defect: defect, realm: realm)
            let key = Self.objectKey(mirrorKey)
            // Another poll of the same batch has newer data.
            guard !writes.contains(key) else { continue }
            removed.append(mirrorKey)
            if !isDeleted { writes.delete(key, at: position, context.decision) }
        }
        if !removed.isEmpty {
            writes.batch.append(MirrorStore.remove(removed, in: context.environment, decision: context.decision))
        }
        return rows.count < Self.removedMax
    }

    /// - Returns: Whether all of them are removed.
    private mutating func removeOldNotices(
        _ context: PollContext, _ writes: inout DefectWrites, _ connection: inout Connection
    ) throws -> Bool {
        let realms =
            try context.own.map { [$0.person.realm] }
            ?? Array(TrackerPeople(in: context.environment, &directory, &connection).realms.values)
        let rows = try connection.run(
            MirrorStore.notices(
                in: realms, before: NoticeRetentionRule.oldest(now: context.poll.dueAt),
                countMax: Self.removedMax, of: context.environment))
        for (realm, id, position) in try rows.decode(Int32.self, UUID.self, Int64.self) {
            let key = ObjectKey(realm: realm, kind: .notice, id: id)
            if !writes.contains(key) { writes.delete(key, at: position, context.decision) }
        }
        return rows.count < Self.removedMax
    }
}

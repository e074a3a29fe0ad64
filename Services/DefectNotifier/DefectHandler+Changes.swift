import BackendConnections
import Compass
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// History polls: processes what happened since the watermark.
extension DefectHandler {
    /// Applies one page of history. Each page is written separately, and the watermark moves with the last one. An
    /// interrupted poll restarts from its first page and skips the rows that it processed before.
    mutating func applyChanges(
        _ page: TrackerPage, _ request: PageRequest, _ context: PollContext, _ writes: inout DefectWrites,
        _ connection: inout Connection
    ) throws -> Disposition<PageRequest> {
        let defects = page.history.map(\.defect)
        let people = try people(of: defects, request, context.environment, &connection)
        writes.batch.expect(
            DefectStore.expectWatermark(
                context.watermark, of: context.tracker.namespace, context.own?.person.realm, in: context.environment,
                decision: context.decision))
        // Rows about defects that the person reported, or no longer owns, notify other people.
        if request.subset != .reported {
            try writeNotices(for: page.history, people, request, context, &writes, &connection)
        }
        try mirror(defects, people, request, context, &writes, &connection)
        var next = request
        next.newest = WatermarkRule.newest(
            request.newest, of: page.history.lazy.map(\.seconds), now: context.poll.dueAt)
        next.cursor = page.cursor
        if request.subset == .assigned { next.loginNames.formUnion(defects.lazy.compactMap(\.owner)) }
        if page.cursor == nil {
            guard let own = request.own, request.subset == .assigned else {
                moveWatermark(after: next.newest, request, context, &writes)
                return .finished
            }
            try next.advanceToReported(
                mirrored: connection.run(
                    MirrorStore.records(
                        in: own.person.realm, countMax: Self.mirroredRecordsMax, of: context.environment)))
        }
        return .call(next, startBefore: .now + Self.startMax)
    }

    /// Limit on records in the query by record id: the most recently written mirrors of a person. The next comparison
    /// covers the others.
    private static let mirroredRecordsMax = 500

    /// Writes the notices for rows that were not processed before.
    ///
    /// A row's id is made from the action and not from the defect's owner, who may have changed by the time of the next
    /// read. What happened before a defect was assigned to a person does not notify that person.
    private func writeNotices(
        for history: [HistoryRow], _ people: TrackerPeople, _ request: PageRequest, _ context: PollContext,
        _ writes: inout DefectWrites, _ connection: inout Connection
    ) throws {
        let rows = Dictionary(history.map { (context.tracker.row($0), $0) }) { first, _ in first }
        if rows.isEmpty { return }
        let previousIDs = rows.mapValues { context.tracker.rowWithoutID($0) }
        let processed = Set(
            try connection.run(
                DefectStore.processed(Array(Set(rows.keys).union(previousIDs.values)), in: context.environment)
            )
            .decode(UUID.self))
        var fresh: [UUID: HistoryRow] = [:]
        for (id, row) in rows
        where !processed.contains(id) && !processed.contains(previousIDs[id] ?? id) && writes.markProcessed(id) {
            fresh[id] = row
        }
        if fresh.isEmpty { return }
        let ids = Array(fresh.keys)
        writes.batch.expect(DefectStore.expectUnprocessed(ids, in: context.environment, decision: context.decision))
        writes.batch.append(
            DefectStore.markProcessed(
                ids, ids.map { Int64(fresh[$0]?.seconds ?? 0) }, in: context.environment, decision: context.decision))
        // The first read only records existing history. It writes no notices.
        if request.isInitialRead { return }
        var notices: [ObjectKey: Notice] = [:]
        for row in fresh.values {
            guard let addressed = NoticeRule.notice(for: row), let person = people.byLogin[addressed.owner] else {
                continue
            }
            let key = ObjectKey(
                realm: person.realm, kind: .notice, id: context.tracker.notice(of: row, to: person.email))
            notices[key] = Notice(
                about: context.tracker.defect(row.defect.record), code: addressed.code, text: addressed.text,
                timestamp: context.poll.dueAt)
        }
        try write(notices, context, &writes, &connection)
    }

    /// Writes notices that have neither an object nor a tombstone, and removes those above the retention limits.
    private func write(
        _ notices: [ObjectKey: Notice], _ context: PollContext, _ writes: inout DefectWrites,
        _ connection: inout Connection
    ) throws {
        if notices.isEmpty { return }
        let existing = try Presence.byKey(connection.run(Presence.load(notices.keys, in: context.environment)))
        let new = notices.filter { existing[$0.key] == nil }
        if new.isEmpty { return }
        let realms = Set(new.keys.map(\.realm)).sorted()
        var dated: [Int32: [NoticeRetentionRule.DatedNotice]] = [:]
        var positions: [ObjectKey: Int64] = [:]
        for (realm, id, position, time) in try connection.run(
            MirrorStore.notices(in: realms, of: context.environment)
        ).decode(Int32.self, UUID.self, Int64.self, String.self) {
            positions[ObjectKey(realm: realm, kind: .notice, id: id)] = position
            // A notice without a readable timestamp counts as new.
            dated[realm, default: []].append(
                NoticeRetentionRule.DatedNotice(id: id, timestamp: Timestamp(time) ?? context.poll.dueAt))
        }
        for (key, notice) in new {
            dated[key.realm, default: []].append(
                NoticeRetentionRule.DatedNotice(id: key.id, timestamp: notice.timestamp))
        }
        var surplus: Set<ObjectKey> = []
        for (realm, notices) in dated {
            for id in NoticeRetentionRule.surplus(of: notices, now: context.poll.dueAt) {
                surplus.insert(ObjectKey(realm: realm, kind: .notice, id: id))
            }
        }
        for (key, notice) in new where !surplus.contains(key) { try writes.put(key, at: 0, notice, context.decision) }
        for key in surplus {
            if let position = positions[key] { writes.delete(key, at: position, context.decision) }
        }
    }

    private func moveWatermark(
        after newest: Int?, _ request: PageRequest, _ context: PollContext, _ writes: inout DefectWrites
    ) {
        let (tracker, environment, decision) = (context.tracker.namespace, context.environment, context.decision)
        let before = context.watermark.flatMap(CompassTime.init)?.clockSeconds
        let after = max(newest ?? .min, request.watermarkMin)
        let time = CompassTime(clockSeconds: after).description
        guard let own = context.own else {
            if context.oldestOwnWatermark != nil {
                writes.batch.append(OwnLoginStore.removeWatermarks(of: tracker, in: environment, decision: decision))
            }
            guard after != before || context.accountWatermark != context.watermark else { return }
            writes.batch.append(DefectStore.moveWatermark(to: time, of: tracker, in: environment, decision: decision))
            removeProcessedRows(before: after, context, &writes)
            return
        }
        if after != before {
            writes.batch.append(
                OwnLoginStore.moveWatermark(
                    to: time, of: tracker, own.person.realm, in: environment, decision: decision))
        }
        guard after > context.environmentWatermark.flatMap(CompassTime.init)?.clockSeconds ?? .min else { return }
        writes.batch.append(
            OwnLoginStore.raiseWatermark(
                to: time, of: tracker, afterAccount: context.accountWatermark != nil, in: environment,
                decision: decision))
        // Other people's polls may be later by up to `lateSecondsMax`.
        removeProcessedRows(before: after - WatermarkRule.lateSecondsMax, context, &writes)
    }

    private func removeProcessedRows(before watermark: Int, _ context: PollContext, _ writes: inout DefectWrites) {
        writes.batch.append(
            DefectStore.removeProcessed(
                through: Int64(WatermarkRule.since(watermark)), in: context.environment, decision: context.decision))
    }
}

extension PageRequest {
    /// Moves on to the query for defects that the person reported or has mirrors of.
    ///
    /// - Parameter mirrored: Rows of ``MirrorStore/records(in:countMax:of:)``.
    fileprivate mutating func advanceToReported(mirrored: Rows) throws {
        subset = .reported
        for (record, owner, submitter) in try mirrored.decode(String.self, String?.self, String?.self) {
            mirroredRecords.append(record)
            loginNames.formUnion([owner, submitter].compactMap(\.self))
        }
    }
}

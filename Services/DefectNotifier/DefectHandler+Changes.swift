import BackendConnections
import Compass
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// A round: what has happened since the watermark.
extension DefectHandler {
    /// Each page is written by itself. The watermark moves with the last one: a round that is broken off begins anew,
    /// and finds what it has written.
    mutating func follow(
        _ page: PageRead, _ reading: Reading, _ turn: Turn, _ writes: inout DefectWrites,
        _ connection: inout Connection
    ) throws -> Disposition<Reading> {
        let defects = page.history.map(\.defect)
        let people = try people(of: defects, reading, turn.environment, &connection)
        writes.expect(expectWatermark(turn))
        // Rows of what a person reported, or has lost, are others' news.
        if reading.part != .reported { try tell(page.history, people, reading, turn, &writes, &connection) }
        try mirror(defects, people, reading, turn, &writes, &connection)
        var rest = reading
        rest.newest = WatermarkRule.newest(
            reading.newest, of: page.history.lazy.map(\.seconds), now: turn.poll.dueAt)
        rest.open = page.open
        if reading.part == .assigned { rest.names.formUnion(defects.lazy.compactMap(\.owner)) }
        if page.open == nil {
            guard let own = reading.own, reading.part == .assigned else {
                moveWatermark(after: rest.newest, reading, turn, &writes)
                return .finished
            }
            try rest.goOn(
                with: connection.run(
                    MirrorStore.mirrored(in: own.person.realm, countMax: Self.mirroredMax, of: turn.environment)))
        }
        return .call(rest, startBefore: .now + Self.startMax)
    }

    /// Records that are asked for by their ids in one query: those of a person's mirrors that were written last. What
    /// others have become is seen by the next comparison.
    private static let mirroredMax = 500

    private func expectWatermark(_ turn: Turn) -> Statement {
        let (tracker, environment, decision) = (turn.tracker.namespace, turn.environment, turn.decision)
        guard let own = turn.own else {
            return DefectStore.expectWatermark(turn.watermark, of: tracker, in: environment, decision: decision)
        }
        return OwnStore.expectWatermark(
            turn.watermark, of: tracker, own.person.realm, in: environment, decision: decision)
    }

    /// Writes the notices of rows that were not read before.
    ///
    /// A row is known by what happened, and not by its owner, who may be another one when it is read again: what
    /// happened before a defect came to somebody is not told to them.
    private func tell(
        _ history: [HistoryRow], _ people: KnownPeople, _ reading: Reading, _ turn: Turn,
        _ writes: inout DefectWrites, _ connection: inout Connection
    ) throws {
        let rows = Dictionary(history.map { (turn.tracker.row($0), $0) }) { first, _ in first }
        if rows.isEmpty { return }
        let before = rows.mapValues { turn.tracker.rowWithoutID($0) }
        let seen = Set(
            try connection.run(DefectStore.seen(Array(Set(rows.keys).union(before.values)), in: turn.environment))
                .decode(UUID.self))
        var fresh: [UUID: HistoryRow] = [:]
        for (id, row) in rows where !seen.contains(id) && !seen.contains(before[id] ?? id) && writes.see(id) {
            fresh[id] = row
        }
        if fresh.isEmpty { return }
        let ids = Array(fresh.keys)
        writes.expect(DefectStore.expectUnseen(ids, in: turn.environment, decision: turn.decision))
        writes.also(
            DefectStore.see(
                ids, ids.map { Int64(fresh[$0]?.seconds ?? 0) }, in: turn.environment, decision: turn.decision))
        // What was there before the tracker was read for the first time is no news.
        if reading.isFirst { return }
        var notices: [ObjectKey: Notice] = [:]
        for row in fresh.values {
            guard let told = NoticeRule.told(of: row), let person = people.byLogin[told.owner] else { continue }
            let key = ObjectKey(
                realm: person.realm, kind: .notice, id: turn.tracker.notice(of: row, to: person.email))
            notices[key] = Notice(
                about: turn.tracker.defect(row.defect.record), code: told.code, text: told.text,
                timestamp: turn.poll.dueAt)
        }
        try write(notices, turn, &writes, &connection)
    }

    /// Writes notices where there is neither one nor its tombstone, and removes those that are one too many.
    private func write(
        _ notices: [ObjectKey: Notice], _ turn: Turn, _ writes: inout DefectWrites, _ connection: inout Connection
    ) throws {
        if notices.isEmpty { return }
        let there = try Presence.byKey(
            connection.run(Presence.load(notices.keys, in: turn.environment)))
        let new = notices.filter { there[$0.key] == nil }
        if new.isEmpty { return }
        let realms = Set(new.keys.map(\.realm)).sorted()
        var kept: [Int32: [NoticeKeepRule.Kept]] = [:]
        var positions: [ObjectKey: Int64] = [:]
        for (realm, id, position, time) in try connection.run(
            MirrorStore.notices(in: realms, of: turn.environment)
        ).decode(Int32.self, UUID.self, Int64.self, String.self) {
            positions[ObjectKey(realm: realm, kind: .notice, id: id)] = position
            // One that does not say when it is of stays.
            kept[realm, default: []].append(
                NoticeKeepRule.Kept(id: id, timestamp: Timestamp(time) ?? turn.poll.dueAt))
        }
        for (key, notice) in new {
            kept[key.realm, default: []].append(NoticeKeepRule.Kept(id: key.id, timestamp: notice.timestamp))
        }
        var surplus: Set<ObjectKey> = []
        for (realm, notices) in kept {
            for id in NoticeKeepRule.surplus(of: notices, now: turn.poll.dueAt) {
                surplus.insert(ObjectKey(realm: realm, kind: .notice, id: id))
            }
        }
        for (key, notice) in new where !surplus.contains(key) { try writes.put(key, at: 0, notice, turn.decision) }
        for key in surplus {
            if let position = positions[key] { writes.delete(key, at: position, turn.decision) }
        }
    }

    private func moveWatermark(
        after newest: Int?, _ reading: Reading, _ turn: Turn, _ writes: inout DefectWrites
    ) {
        let (tracker, environment, decision) = (turn.tracker.namespace, turn.environment, turn.decision)
        let before = turn.watermark.flatMap(CompassTime.init)?.secondsOfItsClock
        let after = max(newest ?? .min, reading.reached)
        let time = CompassTime(secondsOfItsClock: after).description
        guard let own = turn.own else {
            if turn.ownOldest != nil {
                writes.also(OwnStore.forgetWatermarks(of: tracker, in: environment, decision: decision))
            }
            guard after != before || turn.accountWatermark != turn.watermark else { return }
            writes.also(DefectStore.moveWatermark(to: time, of: tracker, in: environment, decision: decision))
            forget(after: after, turn, &writes)
            return
        }
        if after != before {
            writes.also(
                OwnStore.moveWatermark(
                    to: time, of: tracker, own.person.realm, in: environment, decision: decision))
        }
        guard after > turn.everybodys.flatMap(CompassTime.init)?.secondsOfItsClock ?? .min else { return }
        writes.also(
            OwnStore.raiseWatermark(
                to: time, of: tracker, afterAccount: turn.accountWatermark != nil, in: environment,
                decision: decision))
        // Others may read much later than this person.
        forget(after: after - WatermarkRule.lateSecondsMax, turn, &writes)
    }

    private func forget(after watermark: Int, _ turn: Turn, _ writes: inout DefectWrites) {
        writes.also(
            DefectStore.forget(
                through: Int64(WatermarkRule.since(watermark)), in: turn.environment, decision: turn.decision))
    }
}

extension Reading {
    /// Asks for what else may concern a person, when what is assigned to them is read.
    ///
    /// - Parameter mirrored: Rows of `MirrorStore.mirrored`.
    fileprivate mutating func goOn(with mirrored: Rows) throws {
        part = .reported
        for (record, owner, submitter) in try mirrored.decode(String.self, String?.self, String?.self) {
            self.mirrored.append(record)
            names.formUnion([owner, submitter].compactMap(\.self))
        }
    }
}

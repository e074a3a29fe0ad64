import BackendConnections
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// People's mirrors of defects.
extension DefectHandler {
    /// Objects that are removed at a time.
    private static let removedMax = 1_000

    /// Writes the mirrors of defects that differ, but for those that were written since the reading was begun: what
    /// they were written from may be newer, and the next reading sees it.
    ///
    /// - Returns: The defects of which somebody has a mirror by now.
    @discardableResult
    func mirror(
        _ defects: [TrackedDefect], _ people: KnownPeople, _ reading: Reading, _ turn: Turn,
        _ writes: inout DefectWrites, _ connection: inout Connection
    ) throws -> Set<UUID> {
        // All rows of a result set tell what a record is by now.
        let byID = Dictionary(defects.map { (turn.tracker.defect($0.record), $0) }) { _, last in last }
        if byID.isEmpty { return [] }
        var held = try MirrorStore.read(
            connection.run(MirrorStore.places(of: Array(byID.keys), in: turn.environment)))
        // What one person sees says nothing of what others have.
        if let own = reading.own { held = held.mapValues { $0.intersection([own.person.realm]) } }
        let realms = people.realms
        let wanted = byID.mapValues { MirrorRule.mirrors(of: $0, people: realms) }
        var places: [MirrorStore.Place] = []
        for (id, mirrors) in wanted {
            places += Set(mirrors.keys).union(held[id] ?? []).map { MirrorStore.Place(defect: id, realm: $0) }
        }
        let objects = try RealmObject.byKey(
            connection.run(RealmObject.load(places.lazy.map(Self.key), in: turn.environment)))
        var taken: [MirrorStore.Place] = []
        var released: [MirrorStore.Place] = []
        for place in places {
            let (key, object) = (Self.key(place), objects[Self.key(place)])
            guard object?.position ?? 0 <= reading.askedAt, !writes.has(key) else { continue }
            let mirror = wanted[place.defect]?[place.realm]
            try write(mirror, over: object, key, turn, &writes)
            switch (mirror != nil, held[place.defect]?.contains(place.realm) == true) {
            case (true, false): taken.append(place)
            case (false, true): released.append(place)
            case (true, true), (false, false): break
            }
        }
        if !taken.isEmpty {
            writes.also(MirrorStore.hold(taken, in: turn.environment, decision: turn.decision))
        }
        if !released.isEmpty {
            writes.also(MirrorStore.release(released, in: turn.environment, decision: turn.decision))
        }
        return Set(wanted.filter { !$0.value.isEmpty }.keys)
    }

    /// Who the owners and submitters of defects are, as far as this reading is about them.
    mutating func people(
        of defects: [TrackedDefect], _ reading: Reading, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> KnownPeople {
        guard let own = reading.own else {
            return try KnownPeople(of: defects, in: environment, &directory, &connection)
        }
        // What a query asked for names the person, but for where it asked for records as well.
        return switch reading.part {
        case .everybodys, .assigned: KnownPeople(own.person, as: defects.compactMap(\.owner))
        case .reported where reading.mirrored.isEmpty: KnownPeople(own.person, as: defects.compactMap(\.submitter))
        case .reported: KnownPeople(own.person, as: reading.names)
        }
    }

    /// - Parameters:
    ///   - mirror: What is wanted; `nil`: nothing.
    ///   - object: What is stored, a tombstone too.
    private func write(
        _ mirror: Defect?, over object: RealmObject?, _ key: ObjectKey, _ turn: Turn, _ writes: inout DefectWrites
    ) throws {
        let position = object?.position ?? 0
        // One that does not decode is written anew.
        let stored = try? object?.decoded(as: Defect.self, by: decoder)
        switch MirrorRule.difference(stored: stored, isThere: object?.isDeleted == false, wanted: mirror) {
        case .put(let defect): try writes.put(key, at: position, defect, turn.decision)
        case .delete: writes.delete(key, at: position, turn.decision)
        case nil: break
        }
    }

    private static func key(_ place: MirrorStore.Place) -> ObjectKey {
        ObjectKey(realm: place.realm, kind: .defect, id: place.defect)
    }

    /// Each page is compared by itself. When all are read, the mirrors go of defects that no page had; and notices that
    /// are too old, of people to whom nothing happens any more.
    mutating func compare(
        _ page: PageRead, _ reading: Reading, _ turn: Turn, _ writes: inout DefectWrites,
        _ connection: inout Connection
    ) throws -> Disposition<Reading> {
        var rest = reading
        if !reading.isRead {
            let people = try people(of: page.defects, reading, turn.environment, &connection)
            rest.found.formUnion(try mirror(page.defects, people, reading, turn, &writes, &connection))
            rest.isSure = reading.isSure && page.unreadable.isEmpty
            rest.open = page.open
            if page.open == nil {
                // What is removed is removed after what was found is written.
                rest.isRead = reading.part != .assigned
                rest.part = reading.part == .assigned ? .reported : reading.part
            }
            return .call(rest, startBefore: .now + Self.startMax)
        }
        let isAllGone = try !reading.isSure || removeGone(reading, turn, &writes, &connection)
        let isAllOld = try isAllGone && removeOld(turn, &writes, &connection)
        return isAllGone && isAllOld ? .finished : .call(rest, startBefore: .now + Self.startMax)
    }

    /// - Returns: Whether no more than that is left.
    private func removeGone(
        _ reading: Reading, _ turn: Turn, _ writes: inout DefectWrites, _ connection: inout Connection
    ) throws -> Bool {
        let rows = try connection.run(
            MirrorStore.gone(
                but: reading.found, in: turn.own?.person.realm, through: reading.askedAt, countMax: Self.removedMax,
                of: turn.environment))
        var released: [MirrorStore.Place] = []
        for (defect, realm, position, isDeleted) in try rows.decode(UUID.self, Int32.self, Int64.self, Bool.self) {
            let place = MirrorStore.Place(defect: defect, realm: realm)
            let key = Self.key(place)
            // A round of the same batch knows more.
            guard !writes.has(key) else { continue }
            released.append(place)
            if !isDeleted { writes.delete(key, at: position, turn.decision) }
        }
        if !released.isEmpty {
            writes.also(MirrorStore.release(released, in: turn.environment, decision: turn.decision))
        }
        return rows.count < Self.removedMax
    }

    /// - Returns: Whether no more than that is left.
    private mutating func removeOld(
        _ turn: Turn, _ writes: inout DefectWrites, _ connection: inout Connection
    ) throws -> Bool {
        let realms =
            try turn.own.map { [$0.person.realm] }
            ?? Array(KnownPeople(in: turn.environment, &directory, &connection).realms.values)
        let rows = try connection.run(
            MirrorStore.notices(
                in: realms, before: NoticeKeepRule.oldest(now: turn.poll.dueAt),
                countMax: Self.removedMax, of: turn.environment))
        for (realm, id, position) in try rows.decode(Int32.self, UUID.self, Int64.self) {
            let key = ObjectKey(realm: realm, kind: .notice, id: id)
            if !writes.has(key) { writes.delete(key, at: position, turn.decision) }
        }
        return rows.count < Self.removedMax
    }
}

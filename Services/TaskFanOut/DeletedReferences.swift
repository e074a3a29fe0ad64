import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Removes the objects in `/common` of a deleted team or person: the memberships, and the `PersonLookup`.
///
/// A team may have many memberships: they become due keys, and are processed a few at a time. A membership that is
/// written after its team was deleted is removed by its own event. The objects of a team or person that is missing
/// without a tombstone stay, because it may be restored.
struct DeletedReferences {
    typealias Cause = (decision: Int, key: ObjectKey, presence: Presence)

    /// - Parameter causes: Teams, people and memberships of events, in their current state.
    func removeObjects(
        of causes: [Cause], _ fixedRealms: TaskRealms, in environment: EnvironmentID, _ batch: inout WriteBatch,
        on connection: inout Connection
    ) throws {
        let people = causes.filter { $0.presence.isDeleted && $0.key.kind == .person }
        let members = causes.filter { $0.key.kind == .membership && $0.presence.isThere }
        guard !people.isEmpty || !members.isEmpty else { return }
        let lookups = people.map { ObjectKey(realm: fixedRealms.common, kind: .personLookup, id: $0.key.id) }
        let results = try connection.run([
            RealmObject.load(members.map(\.key), in: environment), Presence.load(lookups, in: environment),
        ])
        let objects = try RealmObject.byKey(results[0])
        let presences = try Presence.byKey(results[1])
        for (person, lookup) in zip(people, lookups) where presences[lookup]?.isThere == true {
            batch.delete(lookup, decision: person.decision)
        }
        try remove(members, objects, fixedRealms, in: environment, &batch, on: &connection)
    }

    /// Finds the memberships of deleted teams and people.
    func memberships(
        of causes: [Cause], _ fixedRealms: TaskRealms, in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [(decision: Int, id: UUID)] {
        func deleted(_ kind: Kind) -> [(id: UUID, decision: Int)] {
            causes.filter { $0.presence.isDeleted && $0.key.kind == kind }.map { ($0.key.id, $0.decision) }
        }
        let (teams, people) = (deleted(.team), deleted(.person))
        var statements: [Statement] = []
        if !teams.isEmpty {
            statements.append(Memberships.of(teams: teams, common: fixedRealms.common, in: environment))
        }
        if !people.isEmpty {
            statements.append(Memberships.of(people: people, common: fixedRealms.common, in: environment))
        }
        if statements.isEmpty { return [] }
        return try connection.run(statements).flatMap { try $0.decode(Int32.self, UUID.self) }.map { (Int($0), $1) }
    }

    /// Removes the memberships whose team or person has a tombstone.
    private func remove(
        _ members: [Cause], _ objects: [ObjectKey: RealmObject], _ fixedRealms: TaskRealms,
        in environment: EnvironmentID, _ batch: inout WriteBatch, on connection: inout Connection
    ) throws {
        var references: [ObjectKey: [ObjectKey]] = [:]
        for (key, object) in objects {
            guard let fields = object.fields.flatMap({ try? JSONObject($0.bytes) }) else { continue }
            references[key] =
                [fields.id(of: "team").map(fixedRealms.team), fields.id(of: "person").map(fixedRealms.person)]
                .compactMap(\.self)
        }
        guard !references.isEmpty else { return }
        let presences = try Presence.byKey(
            connection.run(Presence.load(Set(references.values.joined()), in: environment)))
        var removed: Set<ObjectKey> = []
        for (decision, key, presence) in members {
            let deleted = references[key]?.lazy.compactMap { key in presences[key].map { (key: key, presence: $0) } }
                .first { $0.presence.isDeleted }
            guard let deleted, removed.insert(key).inserted else { continue }
            batch.expect(key, at: presence.position, decision: decision)
            batch.expect(deleted.key, at: deleted.presence.position, decision: decision)
            batch.delete(key, decision: decision)
        }
    }
}

extension Presence {
    /// Whether it has a tombstone.
    fileprivate var isDeleted: Bool { position > 0 && !isThere }
}

import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Removes a deleted team's or person's objects in `/common`: the memberships, and the `PersonLookup`.
///
/// A team's memberships may be many: their keys are parked, due at once, and decided a few at a time. A membership that
/// is written after its team was deleted is removed by its own event. A team or a person that is only missing, without
/// a tombstone, may be restored: its objects stay.
struct DeletedReferences {
    typealias Cause = (decision: Int, key: ObjectKey, presence: Presence)

    /// - Parameter causes: Teams, people and memberships that events are about, as they are now.
    func settle(
        _ causes: [Cause], _ places: TaskPlaces, in environment: EnvironmentID, _ batch: inout WriteBatch,
        on connection: inout Connection
    ) throws {
        let gone = causes.filter { $0.presence.isDeleted }
        let teams = gone.filter { $0.key.kind == .team }.map { (id: $0.key.id, decision: $0.decision) }
        let people = gone.filter { $0.key.kind == .person }.map { (id: $0.key.id, decision: $0.decision) }
        let members = causes.filter { $0.key.kind == .membership && $0.presence.isThere }
        var statements: [Statement] = []
        if !teams.isEmpty { statements.append(Memberships.of(teams: teams, common: places.common, in: environment)) }
        if !people.isEmpty { statements.append(Memberships.of(people: people, common: places.common, in: environment)) }
        guard !gone.isEmpty || !members.isEmpty else { return }
        let lookups = people.map { ObjectKey(realm: places.common, kind: .personLookup, id: $0.id) }
        statements += [
            RealmObject.load(members.map(\.key), in: environment), Presence.load(lookups, in: environment),
        ]
        var answers = try connection.run(statements)[...]
        let found = try Presence.byKey(answers.removeLast())
        let objects = try RealmObject.byKey(answers.removeLast())
        let left = try answers.flatMap { try $0.decode(Int32.self, UUID.self) }
        if !left.isEmpty {
            batch.also(TaskCascade.memberships(left.map { (id: $1, decision: Int($0)) }, in: environment))
            batch.parksDueKeys = true
        }
        for (person, lookup) in zip(people, lookups) where found[lookup]?.isThere == true {
            batch.delete(lookup, decision: person.decision)
        }
        try remove(members, objects, places, in: environment, &batch, on: &connection)
    }

    /// Removes the memberships whose team or person has a tombstone.
    private func remove(
        _ members: [Cause], _ objects: [ObjectKey: RealmObject], _ places: TaskPlaces, in environment: EnvironmentID,
        _ batch: inout WriteBatch, on connection: inout Connection
    ) throws {
        var named: [ObjectKey: [ObjectKey]] = [:]
        for (key, object) in objects {
            guard let fields = object.fields.flatMap({ try? JSONObject($0.bytes) }) else { continue }
            named[key] =
                [fields.id(of: "team").map(places.team), fields.id(of: "person").map(places.person)].compactMap(\.self)
        }
        guard !named.isEmpty else { return }
        let found = try Presence.byKey(connection.run(Presence.load(Set(named.values.joined()), in: environment)))
        var removed: Set<ObjectKey> = []
        for (decision, key, presence) in members {
            let gone = named[key]?.lazy.compactMap { key in found[key].map { (key: key, presence: $0) } }
                .first { $0.presence.isDeleted }
            guard let gone, removed.insert(key).inserted else { continue }
            batch.expect(key, at: presence.position, decision: decision)
            batch.expect(gone.key, at: gone.presence.position, decision: decision)
            batch.delete(key, decision: decision)
        }
    }
}

extension Presence {
    /// Whether it has a tombstone.
    fileprivate var isDeleted: Bool { position > 0 && !isThere }
}

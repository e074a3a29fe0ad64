import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Memberships that are left of a person or a team that was removed, or that no manager can have made.
///
/// They are removed, and none is made: a repair lets nobody in. What was not removed but is missing, without even a
/// tombstone, may come back, and its memberships stay.
enum Leftovers {
    /// Removes those that are still so, as a manager does, at new positions.
    ///
    /// - Parameter audit: The record of a removal, by its key and the number of its decision.
    static func remove(
        _ rows: [Inconsistency], in environment: EnvironmentID, on connection: inout Connection,
        audit: (String, Int32) -> Statement
    ) throws {
        var directory = RealmDirectory()
        guard let common = try directory.id(of: .common, in: environment, create: false, on: &connection) else {
            return
        }
        let keys = rows.map { ObjectKey(realm: common, kind: .membership, id: $0.id) }
        let memberships = try RealmObject.byKey(connection.run(RealmObject.load(keys, in: environment)))
        var named: Set<ObjectKey> = []
        var pairs: [ObjectKey: (person: UUID?, team: UUID?)] = [:]
        for (key, object) in memberships {
            guard let fields = try object.fields.map({ try JSONObject($0.bytes) }) else { continue }
            let pair = (person: fields.id(of: "person"), team: fields.id(of: "team"))
            pairs[key] = pair
            for person in [pair.person].compactMap(\.self) {
                named.insert(ObjectKey(realm: common, kind: .person, id: person))
            }
            for team in [pair.team].compactMap(\.self) {
                named.insert(ObjectKey(realm: common, kind: .team, id: team))
            }
        }
        let others = try RealmObject.byKey(connection.run(RealmObject.load(named, in: environment)))
        var batch = WriteBatch(environment: environment)
        for (decision, row) in rows.enumerated() {
            let key = keys[decision]
            guard let object = memberships[key], object.position == row.position, let pair = pairs[key] else {
                continue
            }
            let gone = [
                pair.person.map { ObjectKey(realm: common, kind: .person, id: $0) },
                pair.team.map { ObjectKey(realm: common, kind: .team, id: $0) },
            ].compactMap { $0.flatMap { others[$0] } }.first(where: \.isDeleted)
            guard gone != nil || !isPaired(pair, key.id) else { continue }
            batch.expect(key, at: object.position, decision: decision)
            if let gone { batch.expect(gone.key, at: gone.position, decision: decision) }
            batch.delete(key, decision: decision)
            batch.also(audit(row.key, Int32(decision)))
        }
        _ = try batch.commit(on: &connection)
    }

    private static func isPaired(_ pair: (person: UUID?, team: UUID?), _ id: UUID) -> Bool {
        guard let person = pair.person, let team = pair.team else { return false }
        return Membership.id(of: person, in: team) == id
    }
}

import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Memberships whose person or team was deleted, or whose id no manager's device can have made.
///
/// A repair deletes them and creates none: it grants no access. If the person or team is missing without a tombstone,
/// it may be restored, and its memberships are kept.
enum OrphanedMemberships {
    /// Deletes those that are still orphaned, at new positions, as a manager does.
    ///
    /// - Parameter audit: Returns the audit record of a deletion, for its key and the number of its decision.
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
        var referenced: Set<ObjectKey> = []
        var pairs: [ObjectKey: (person: UUID?, team: UUID?)] = [:]
        for (key, object) in memberships {
            guard let fields = try object.fields.map({ try JSONObject($0.bytes) }) else { continue }
            let pair = (person: fields.id(of: "person"), team: fields.id(of: "team"))
            pairs[key] = pair
            for person in [pair.person].compactMap(\.self) {
                referenced.insert(ObjectKey(realm: common, kind: .person, id: person))
            }
            for team in [pair.team].compactMap(\.self) {
                referenced.insert(ObjectKey(realm: common, kind: .team, id: team))
            }
        }
        let others = try RealmObject.byKey(connection.run(RealmObject.load(referenced, in: environment)))
        var batch = WriteBatch(environment: environment)
        for (decision, row) in rows.enumerated() {
            let key = keys[decision]
            guard let object = memberships[key], object.position == row.position, let pair = pairs[key] else {
                continue
            }
            let deleted = [
                pair.person.map { ObjectKey(realm: common, kind: .person, id: $0) },
                pair.team.map { ObjectKey(realm: common, kind: .team, id: $0) },
            ].compactMap { $0.flatMap { others[$0] } }.first(where: \.isDeleted)
            guard deleted != nil || !isPaired(pair, key.id) else { continue }
            batch.expect(key, at: object.position, decision: decision)
            if let deleted { batch.expect(deleted.key, at: deleted.position, decision: decision) }
            batch.delete(key, decision: decision)
            batch.append(audit(row.key, Int32(decision)))
        }
        _ = try batch.commit(on: &connection)
    }

    private static func isPaired(_ pair: (person: UUID?, team: UUID?), _ id: UUID) -> Bool {
        guard let person = pair.person, let team = pair.team else { return false }
        return Membership.id(of: person, in: team) == id
    }
}

import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import Tenants

/// Deletes what people no longer need of their past: the content of deleted objects and ended shares after the
/// environment's retention time, and old notices. They become tombstones, which devices receive as usual.
struct HistorySweep: Sweep {
    /// Maximum number of objects deleted in one transaction.
    private static let batchCountMax = 500
    /// Maximum number of objects read of a realm per step. Larger than the sum of all limits.
    static let pageCountMax: Int64 = 20_000

    let name = "deleted objects, ended shares and notices"
    private var realms = RealmIterator(pathPrefix: "/users/")

    /// An object with the time that its age counts from.
    struct DatedObject: Equatable {
        let key: ObjectKey
        let position: Int64
        let time: Timestamp
        /// The sort of a notice.
        var sort: Notice.Code.Sort?
    }

    /// The objects that share a limit.
    private struct Group: Hashable {
        let kind: Kind
        let sort: Notice.Code.Sort?
    }

    /// The retention of one kind in a person's own realm.
    struct Limit: Equatable {
        /// Maximum age in days.
        let days: Int32
        /// Maximum number of objects, of notices of each sort. The newest are retained.
        let countMax: Int
    }

    /// Returns the limits by kind.
    ///
    /// - Parameter days: The environment's retention time of deleted objects.
    static func limits(days: Int32) -> [Kind: Limit] {
        [
            .deletedObject: Limit(days: days, countMax: 5_000), .endedShare: Limit(days: days, countMax: 4_000),
            .notice: Limit(days: 90, countMax: 500),
        ]
    }

    /// Returns the objects beyond their limits. Of objects with equal times, those with the higher positions stay.
    static func excess(_ objects: [DatedObject], _ limits: [Kind: Limit], now: Timestamp) -> [DatedObject] {
        Dictionary(grouping: objects) { Group(kind: $0.key.kind, sort: $0.sort) }
            .flatMap { group, objects -> [DatedObject] in
                guard let limit = limits[group.kind] else { return [] }
                let oldest = now.adding(.seconds(-Int64(limit.days) * 86_400))
                let newestFirst = objects.sorted { ($1.time, $1.position) < ($0.time, $0.position) }
                return newestFirst.enumerated().filter { $0.offset >= limit.countMax || $0.element.time < oldest }
                    .map(\.element)
            }
    }

    mutating func step(on connection: inout Connection) throws -> SweepResult {
        guard let realm = try realms.current(on: &connection) else { return SweepResult(removedCount: 0, isLast: true) }
        let results = try connection.run([DeletionRetention.days(in: realm.environment), objects(in: realm)])
        let limits = Self.limits(days: try results[0][0].decode(Int32.self))
        let dated = try results[1].compactMap { try DatedObject($0, in: realm.number) }
        let excess = Self.excess(dated, limits, now: .now())
        let removed = excess.prefix(Self.batchCountMax)
        if excess.count == removed.count { realms.advance() }
        if removed.isEmpty { return SweepResult(removedCount: 0, isLast: false) }
        var batch = WriteBatch(environment: realm.environment)
        for (decision, object) in removed.enumerated() {
            batch.expect(object.key, at: object.position, decision: decision)
            batch.delete(object.key, decision: decision)
        }
        do throws(PostgresError) {
            let outcome = try batch.commit(on: &connection)
            return SweepResult(removedCount: removed.count - outcome.conflicts.count, isLast: false)
        } catch {
            // Skip an environment that is write-blocked for a move, or has moved.
            guard error.isLocked || error.isDataError else { throw error }
            realms.advance()
            return SweepResult(removedCount: 0, isLast: false)
        }
    }

    /// Reads the objects of the kinds. Rows: kind, id, position, the time of the deletion, end or notice, the code of a
    /// notice.
    private func objects(in realm: RealmIterator.Position) -> Statement {
        """
        SELECT kind, id, position, coalesce(
            fields::json->>'deletedAt', fields::json->>'endedAt', fields::json->>'timestamp'),
            CASE WHEN kind = \(Kind.notice) THEN fields::json->>'code' END
        FROM store.object
        WHERE environment_id = \(realm.environment.rawValue) AND realm_id = \(realm.number)
            AND kind = ANY (\(Array(Self.limits(days: 1).keys))) AND NOT deleted
        LIMIT \(Self.pageCountMax)
        """
    }
}

extension HistorySweep.DatedObject {
    /// Reads kind, id, position, time and code; `nil` if this program version does not have the kind. An object without
    /// a valid time counts as the oldest.
    fileprivate init?(_ row: Row, in realm: Int32) throws(PostgresError) {
        let (kind, id, position, time, code) = try row.decode(
            Int16.self, UUID.self, Int64.self, String?.self, String?.self)
        guard let kind = Kind(number: kind) else { return nil }
        self.init(
            key: ObjectKey(realm: realm, kind: kind, id: id), position: position,
            time: time.flatMap { Timestamp($0) } ?? Timestamp(millisecondsSinceEpoch: .min),
            sort: code.map { Notice.Code(rawValue: $0).sort })
    }
}

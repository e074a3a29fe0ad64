import Audit
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// Reads one object's trace. Nothing is locked, and each table is read up to a limit.
package struct ObjectTraceReader {
    /// Limits of the data that is read for one object.
    package struct Bounds: Sendable {
        /// Maximum number of pointers of the change log, the newest.
        package var changesMax: Int64 = 2_000_000
        /// Maximum number of stored responses to mutations.
        package var answersMax: Int64 = 2_000_000
        /// Maximum number of records of the audit log, the newest.
        package var recordsMax = 2_000_000
        /// The time after which nothing more is read; `nil`: no limit.
        package var deadline: ContinuousClock.Instant?

        package init() {}

        var isOver: Bool { deadline.map { ContinuousClock.now >= $0 } ?? false }
    }

    package static let tracesMax = 20
    static let hopsMax: Int64 = 10_000
    static let auditMax = 100

    struct Object {
        let environment: EnvironmentID
        let environmentName: String
        let realm: Int32
        let path: String
        let kind: Kind
        let id: UUID
        let position: Int64
        let isDeleted: Bool

        var subject: String { "\(path)/\(kind.rawValue)/\(id.text)" }
    }

    /// A pointer of the change log.
    struct Change {
        let position: Int64
        let time: PostgresTime
        let traceparent: String?
    }

    let object: Object
    private let bounds: Bounds
    var hops: [ObjectTrace.Hop] = []
    var gaps: [String] = []
    var changes: [Change] = []
    /// The known writers by position.
    var writers: [Int64: String] = [:]

    init(_ object: Object, within bounds: Bounds) { (self.object, self.bounds) = (object, bounds) }

    static func objects(
        _ id: UUID, in environment: EnvironmentID?, on connection: inout Connection
    ) throws -> [Object] {
        try connection.run(
            """
            SELECT r.environment_id, e.name, r.id, r.path, k.number, n.name, o.position, o.deleted
            FROM realm.realm r JOIN realm.environment e ON e.id = r.environment_id
            CROSS JOIN LATERAL (\(KindCatalogue.numbers(in: "r.environment_id"))) k CROSS JOIN LATERAL (
                SELECT position, deleted FROM store.object
                WHERE environment_id = r.environment_id AND realm_id = r.id AND kind = k.number AND id = \(id)
                OFFSET 0
            ) o JOIN realm.kind n ON n.number = k.number
            WHERE \(environment?.rawValue)::int IS NULL OR r.environment_id = \(environment?.rawValue)
            ORDER BY r.environment_id, o.position LIMIT \(Int64(tracesMax))
            """
        ).decode(
            EnvironmentID.self, String.self, Int32.self, String.self, Int16.self, String.self, Int64.self, Bool.self
        ).map {
            Object(
                environment: $0, environmentName: $1, realm: $2, path: $3, kind: Kind(number: $4, name: $5), id: id,
                position: $6, isDeleted: $7)
        }
    }

    mutating func trace(alongside others: [Object], on connection: inout Connection) throws -> ObjectTrace {
        try read("the change log", on: &connection) { try $0.readChanges(on: &$1) }
        try read("responses to devices", on: &connection) { try $0.readMutations(on: &$1) }
        switch object.kind {
        case .timeEntry:
            // An attempt's response is written together with its status line, and is listed before it.
            try read("attempts to submit", on: &connection) { try $0.readAttempts(on: &$1) }
            try read("the status log", on: &connection) { try $0.readStatusLines(on: &$1) }
            try read("the ledger", on: &connection) { try $0.readLedger(on: &$1) }
        case .notice: try read("deliveries", on: &connection) { try $0.readShipments(on: &$1) }
        case .defectCommand: try read("the command's attempts", on: &connection) { try $0.readCommand(on: &$1) }
        default: break
        }
        addChanges()
        try read("deferred keys", on: &connection) { try $0.readParked(on: &$1) }
        try read("the audit log", on: &connection) { try $0.readAudit(on: &$1) }
        for other in others where other.subject != object.subject && other.environment == object.environment {
            hops.append(
                ObjectTrace.Hop(
                    at: nil, service: "store", event: "sameID",
                    text: "\(other.path) has a \(other.kind.rawValue) with the same id"
                        + (other.isDeleted ? ", deleted" : ""), position: other.position))
        }
        var trace = ObjectTrace(
            environment: object.environmentName, subject: object.subject, hops: hops, gaps: gaps)
        trace.sort()
        return trace
    }

    /// Reads one kind of records, unless the deadline has passed. Skipped records are reported as a gap.
    private mutating func read(
        _ records: String, on connection: inout Connection,
        _ body: (inout ObjectTraceReader, inout Connection) throws -> Void
    ) throws {
        guard !bounds.isOver else {
            gaps.append("\(records): not read, because the deadline had passed")
            return
        }
        do {
            try body(&self, &connection)
        } catch let error as PostgresError where error.isStatementTimeout {
            gaps.append("\(records): not read, because the statement timed out")
        }
    }

    // MARK: Records of all kinds

    private mutating func readChanges(on connection: inout Connection) throws {
        changes = try connection.run(
            """
            SELECT c.position, c.changed_at, c.traceparent
            FROM (
                SELECT * FROM store.change WHERE environment_id = \(object.environment)
                ORDER BY position DESC LIMIT \(bounds.changesMax)
            ) c
            WHERE c.realm_id = \(object.realm) AND c.kind = \(object.kind) AND c.id = \(object.id)
            ORDER BY c.position DESC LIMIT \(Self.hopsMax)
            """
        ).decode(Int64.self, PostgresTime.self, String?.self).map {
            Change(position: $0, time: $1, traceparent: $2)
        }.reversed()
        if !changes.contains(where: { $0.position == object.position }) {
            gaps.append(
                "position \(object.position): the change log has no pointer among the newest \(bounds.changesMax); the "
                    + "time of the write is unknown")
        }
    }

    /// Reads the mutations whose responses have these positions.
    private mutating func readMutations(on connection: inout Connection) throws {
        let rows = try connection.run(
            """
            SELECT m.client_id, m.sequence, m.position
            FROM (
                SELECT * FROM device.mutation WHERE environment_id = \(object.environment) LIMIT \(bounds.answersMax)
            ) m
            WHERE m.position = ANY (\(changes.map(\.position))) ORDER BY m.position, m.sequence
            """
        ).decode(UUID.self, Int64.self, Int64.self)
        for (client, sequence, position) in rows {
            guard let change = changes.first(where: { $0.position == position }) else { continue }
            writers[position] = "device"
            hops.append(
                ObjectTrace.Hop(
                    at: Timestamp(change.time), service: "device", event: "accepted",
                    text: "mutation \(sequence) of client \(client.text) was accepted", position: position,
                    traceparent: change.traceparent))
        }
    }

    /// Adds the changes without a known writer.
    private mutating func addChanges() {
        for change in changes where writers[change.position] == nil {
            hops.append(
                ObjectTrace.Hop(
                    at: Timestamp(change.time), service: "store", event: "written",
                    text: "a new state was written; the writer is not recorded", position: change.position,
                    traceparent: change.traceparent))
        }
    }

    private mutating func readParked(on connection: inout Connection) throws {
        let rows = try connection.run(
            """
            SELECT group_name, reason, is_dead, attempts, parked_at, next_at, traceparent, topic, partition
            FROM pipeline.parked
            WHERE group_name = ANY (\(Services.all.map(\.name))) AND environment_id = \(object.environment)
                AND key = \(object.subject)
            ORDER BY parked_at
            """
        ).decode(
            String.self, String.self, Bool.self, Int32.self, Timestamp.self, Timestamp.self, String?.self, String.self,
            Int32.self)
        for (group, reason, isDead, attempts, at, next, traceparent, topic, partition) in rows {
            let state = isDead ? "needs manual action" : "next retry at \(next)"
            hops.append(
                ObjectTrace.Hop(
                    at: at, service: group, event: isDead ? "dead" : "parked",
                    text: "deferred: \(reason); attempts: \(attempts); \(state)", topic: topic,
                    partition: partition, traceparent: traceparent))
        }
        gaps.append(
            "only the current deferral of a key is recorded; earlier ones are unknown, except those that operators "
                + "retried or discarded")
    }

    /// The details of an audit record of a deferred key.
    private struct Detail: Decodable {
        let reason: String?
    }

    private mutating func readAudit(on connection: inout Connection) throws {
        var selection = AuditStore.Selection(
            environment: object.environment, subjects: [object.subject, object.id.text])
        // Views have no effect on the object.
        selection.besides = .payloadViewed
        let audit = try AuditStore.find(
            selection, countMax: Self.auditMax,
            within: AuditStore.Bound(recordCountMax: bounds.recordsMax, deadline: bounds.deadline), on: &connection)
        for row in audit.rows {
            let detail = try? JSONDecoder().decode(Detail.self, from: Data(row.detail.utf8))
            let reason = detail?.reason.map { "; deferred because: \($0)" } ?? ""
            hops.append(
                ObjectTrace.Hop(
                    at: Timestamp(row.time), service: "audit", event: row.action,
                    text: "\(row.action) by \(row.actor) from \(row.address)\(reason)"))
        }
        if let since = audit.since { gaps.append("the audit log: records before \(since) were not read") }
    }
}

extension Timestamp {
    init(_ time: PostgresTime) { self.init(millisecondsSinceEpoch: time.millisecondsSince1970) }
}

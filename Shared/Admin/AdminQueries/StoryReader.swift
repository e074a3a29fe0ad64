import Audit
import Essentials
package import FoundationEssentials
package import Model
import ObjectStore
package import Postgres

extension Story {
    /// The lives of the objects with an id, one for each realm that holds one, as PostgreSQL tells them.
    ///
    /// - Parameters:
    ///   - environment: `nil`: of all environments.
    ///   - bounds: What lies beyond them is told among the gaps.
    /// - Returns: None when there is no such object. At most ``StoryReader/storiesMax``.
    package static func load(
        _ id: UUID, in environment: EnvironmentID?, within bounds: StoryReader.Bounds = .init(),
        on connection: inout Connection
    ) throws -> [Story] {
        let found = try StoryReader.objects(id, in: environment, on: &connection)
        return try found.map { object in
            var reader = StoryReader(object, within: bounds)
            return try reader.story(beside: found, on: &connection)
        }
    }
}

/// Puts one object's story together. Nothing is locked, and each table is read up to a bound.
package struct StoryReader {
    /// How much is looked at for one object.
    package struct Bounds: Sendable {
        /// Pointers of the change log, the newest.
        package var changesMax: Int64 = 2_000_000
        /// Answers to mutations.
        package var answersMax: Int64 = 2_000_000
        /// Records of the audit log, the newest.
        package var recordsMax = 2_000_000
        /// After it nothing more is read; `nil`: as long as it takes.
        package var deadline: ContinuousClock.Instant?

        package init() {}

        var isOver: Bool { deadline.map { ContinuousClock.now >= $0 } ?? false }
    }

    package static let storiesMax = 20
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
    var hops: [Story.Hop] = []
    var gaps: [String] = []
    var changes: [Change] = []
    /// Who is known to have written at a position.
    var writers: [Int64: String] = [:]

    init(_ object: Object, within bounds: Bounds) { (self.object, self.bounds) = (object, bounds) }

    static func objects(
        _ id: UUID, in environment: EnvironmentID?, on connection: inout Connection
    ) throws -> [Object] {
        try connection.run(
            """
            SELECT r.environment_id, e.name, r.id, r.path, k.kind, o.position, o.deleted
            FROM realm.realm r JOIN realm.environment e ON e.id = r.environment_id
            CROSS JOIN unnest(\(Kind.allCases)) AS k(kind) CROSS JOIN LATERAL (
                SELECT position, deleted FROM store.object
                WHERE environment_id = r.environment_id AND realm_id = r.id AND kind = k.kind AND id = \(id)
                OFFSET 0
            ) o
            WHERE \(environment?.rawValue)::int IS NULL OR r.environment_id = \(environment?.rawValue)
            ORDER BY r.environment_id, o.position LIMIT \(Int64(storiesMax))
            """
        ).decode(EnvironmentID.self, String.self, Int32.self, String.self, Kind.self, Int64.self, Bool.self).map {
            Object(
                environment: $0, environmentName: $1, realm: $2, path: $3, kind: $4, id: id, position: $5,
                isDeleted: $6)
        }
    }

    mutating func story(beside others: [Object], on connection: inout Connection) throws -> Story {
        try read("the change log", on: &connection) { try $0.readChanges(on: &$1) }
        try read("answers to devices", on: &connection) { try $0.readMutations(on: &$1) }
        switch object.kind {
        case .timeEntry:
            // What was heard of an attempt is written together with the line that tells it, and is told before it.
            try read("attempts to submit", on: &connection) { try $0.readAttempts(on: &$1) }
            try read("the status log", on: &connection) { try $0.readStatusLines(on: &$1) }
            try read("the ledger", on: &connection) { try $0.readLedger(on: &$1) }
        case .notice: try read("deliveries", on: &connection) { try $0.readShipments(on: &$1) }
        case .defectCommand: try read("the command's attempts", on: &connection) { try $0.readCommand(on: &$1) }
        default: break
        }
        addChanges()
        try read("parked keys", on: &connection) { try $0.readParked(on: &$1) }
        try read("the audit log", on: &connection) { try $0.readAudit(on: &$1) }
        for other in others where other.subject != object.subject && other.environment == object.environment {
            hops.append(
                Story.Hop(
                    at: nil, service: "store", event: "beside",
                    text: "the same id is in \(other.path) too, as \(other.kind.rawValue)"
                        + (other.isDeleted ? ", deleted" : ""), position: other.position))
        }
        return Story(
            environment: object.environmentName, subject: object.subject, hops: Story.inOrder(hops), gaps: gaps)
    }

    /// Reads one part, unless the time is over. What is not read is told.
    private mutating func read(
        _ what: String, on connection: inout Connection,
        _ body: (inout StoryReader, inout Connection) throws -> Void
    ) throws {
        guard !bounds.isOver else {
            gaps.append("\(what): not looked at, since the time for one look was over")
            return
        }
        do {
            try body(&self, &connection)
        } catch let error as PostgresError where error.isOutOfTime {
            gaps.append("\(what): given up, since it took too long")
        }
    }

    // MARK: What every object has

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
                "position \(object.position): its pointer is not in the change log any more, or not among the newest "
                    + "\(bounds.changesMax) that were looked at; when it was written is not known")
        }
    }

    /// Which mutations have these positions as their answers.
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
                Story.Hop(
                    at: Timestamp(change.time), service: "device", event: "accepted",
                    text: "mutation \(sequence) of client \(client.text) was accepted", position: position,
                    traceparent: change.traceparent))
        }
    }

    /// Those changes of which nothing else tells who made them.
    private mutating func addChanges() {
        for change in changes where writers[change.position] == nil {
            hops.append(
                Story.Hop(
                    at: Timestamp(change.time), service: "store", event: "written",
                    text: "a new state was written; by whom is not kept", position: change.position,
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
            let then = isDead ? "it waits for a person" : "it is tried again at \(next)"
            hops.append(
                Story.Hop(
                    at: at, service: group, event: isDead ? "dead" : "parked",
                    text: "parked: \(reason); attempts counted: \(attempts); \(then)", topic: topic,
                    partition: partition, traceparent: traceparent))
        }
        gaps.append(
            "a key's parking is kept only while it is parked: how often and why it was before is not known, but for "
                + "what people tried again or discarded")
    }

    /// What a record of the audit log tells of a parked key.
    private struct Detail: Decodable {
        let reason: String?
    }

    private mutating func readAudit(on connection: inout Connection) throws {
        var selection = AuditStore.Selection(
            environment: object.environment, subjects: [object.subject, object.id.text])
        // Who only looked at it has done nothing to it.
        selection.besides = .payloadViewed
        let found = try AuditStore.find(
            selection, countMax: Self.auditMax,
            within: AuditStore.Bound(recordCountMax: bounds.recordsMax, deadline: bounds.deadline), on: &connection)
        for row in found.rows {
            let detail = try? JSONDecoder().decode(Detail.self, from: Data(row.detail.utf8))
            let reason = detail?.reason.map { "; it was parked: \($0)" } ?? ""
            hops.append(
                Story.Hop(
                    at: Timestamp(row.time), service: "audit", event: row.action,
                    text: "\(row.actor) did \(row.action), from \(row.address)\(reason)"))
        }
        if let since = found.since { gaps.append("the audit log: records before \(since) were not looked at") }
    }
}

extension Story {
    /// By their times; those of the same time as they were found, and those without one last.
    package static func inOrder(_ hops: [Hop]) -> [Hop] {
        hops.enumerated().sorted { one, other in
            switch (one.element.at, other.element.at) {
            case (let a?, let b?) where a != b: a < b
            case (_?, nil): true
            case (nil, _?): false
            case (_?, _?), (nil, nil): one.offset < other.offset
            }
        }.map(\.element)
    }
}

extension Timestamp {
    init(_ time: PostgresTime) { self.init(millisecondsSinceEpoch: time.millisecondsSince1970) }
}

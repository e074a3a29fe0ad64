import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// A line of the report of an erasure.
struct ErasureLine: Encodable {
    enum Action: String, Encodable { case deleted, changed, kept }

    let action: Action
    let content: String
    /// `nil` if it is not counted.
    let count: Int?
    /// The table, or the reason why it is kept.
    let detail: String
    /// The ids of records that are kept in the back end.
    var ids: [String] = []
}

/// Erases a person from an environment, or counts what an erasure would change.
///
/// Rows are erased in pages, each in its own transaction. An interrupted erasure is run again: the row of the person in
/// `access.person`, by which the others are found, is deleted in the last transaction.
struct PersonErasure {
    private let subject: ErasureSubject
    private let isDryRun: Bool
    /// The numbers of objects outside of the person's realms.
    private var deleted: [Kind: Int] = [:]
    private var changed: [Kind: Int] = [:]
    private var kept: [Kind: Int] = [:]
    private var counts: [Int]

    private static let pageCountMax: Int64 = 500
    private static let passesMax = 5

    private init(_ subject: ErasureSubject, isDryRun: Bool) {
        self.subject = subject
        self.isDryRun = isDryRun
        counts = subject.steps.map { _ in 0 }
    }

    /// Counts everything that ``run(_:also:on:)`` erases or keeps.
    static func preview(_ subject: ErasureSubject, on connection: inout Connection) throws -> [ErasureLine] {
        var erasure = PersonErasure(subject, isDryRun: true)
        let start = try erasure.start(on: &connection)
        _ = try erasure.scanMentions(on: &connection)
        for (index, step) in subject.steps.enumerated() {
            erasure.counts[index] = Int(try connection.run(step.count)[0].decode(Int64.self))
        }
        return erasure.lines(start)
    }

    /// Erases the person.
    ///
    /// - Parameter audit: The statement that records the erasure, in its last transaction.
    static func run(
        _ subject: ErasureSubject, also audit: Statement, on connection: inout Connection
    ) throws -> [ErasureLine] {
        var erasure = PersonErasure(subject, isDryRun: false)
        let start = try erasure.start(on: &connection)
        for _ in 1...passesMax {
            try erasure.eraseRows(beforeObjects: true, on: &connection)
            try erasure.eraseMentions(on: &connection)
            try erasure.eraseRows(beforeObjects: false, on: &connection)
            if try erasure.end(also: audit, on: &connection) { return erasure.lines(start) }
        }
        throw CommandFailure(
            "\(subject.email) writes at the same time: block the account at the identity provider, and run it again")
    }

    // MARK: Objects of others

    private mutating func eraseMentions(on connection: inout Connection) throws {
        for _ in 1...Self.passesMax {
            if try scanMentions(on: &connection) == 0 { return }
        }
        throw CommandFailure("objects that refer to \(subject.email) change at the same time: run it again")
    }

    /// Scans the environment's objects once, and erases the person from those that refer to them.
    ///
    /// - Returns: The number of objects to change, including those that changed meanwhile.
    private mutating func scanMentions(on connection: inout Connection) throws -> Int {
        var last = (realm: Int32(0), kind: Int16(0), id: UUID.zero)
        var count = 0
        let names = KindNames()
        kept = [:]
        while true {
            let rows = try connection.run(subject.mentions(after: last, countMax: Self.pageCountMax))
            var batch = WriteBatch(environment: subject.environment)
            var actions: [(kind: Kind, action: ErasureRule.Action)] = []
            for row in rows {
                last = try (row.value(0), row.value(1), row.value(2))
                guard var object = try RealmObject(row) else { continue }
                object.key.kind = try names.kind(object.key.kind.number) { try connection.run($0) } ?? object.key.kind
                let action = try action(of: object)
                try Self.add(action, of: object, to: &batch, decision: actions.count)
                actions.append((object.key.kind, action))
            }
            count += actions.count { $0.action != .keep }
            let missed: Set<Int> = try isDryRun ? [] : batch.commit(on: &connection).conflicts
            for (decision, item) in actions.enumerated() where !missed.contains(decision) {
                switch item.action {
                case .delete: deleted[item.kind, default: 0] += 1
                case .clear: changed[item.kind, default: 0] += 1
                case .keep: kept[item.kind, default: 0] += 1
                }
            }
            if rows.count < Int(Self.pageCountMax) { return count }
        }
    }

    private func action(of object: RealmObject) throws -> ErasureRule.Action {
        let fields = try object.fields.map { try JSONObject($0.bytes) }
        return ErasureRule.action(
            object.key.kind, isOwnID: object.key.id == subject.object,
            isShared: subject.shareRealms.contains(object.key.realm),
            references: ErasureRule.references.filter { subject.object != nil && fields?.id(of: $0) == subject.object })
    }

    private static func add(
        _ action: ErasureRule.Action, of object: RealmObject, to batch: inout WriteBatch, decision: Int
    ) throws {
        switch action {
        case .keep: break
        case .delete:
            batch.expect(object.key, at: object.position, decision: decision)
            batch.delete(object.key, decision: decision)
        case .clear(let names):
            let members = names.map { "\"\($0)\":null" }.joined(separator: ",")
            try batch.patch(object, CanonicalJSON("{\(members)}"), decision: decision)
        }
    }

    // MARK: Rows

    private mutating func eraseRows(beforeObjects: Bool, on connection: inout Connection) throws {
        for (index, step) in subject.steps.enumerated() where step.precedesObjects == beforeObjects {
            counts[index] += try erase(step, on: &connection)
        }
    }

    private func erase(_ step: ErasureStep, on connection: inout Connection) throws -> Int {
        let lock: Statement = "SELECT FROM realm.environment WHERE id = \(subject.environment) FOR NO KEY UPDATE"
        var count = 0
        while true {
            let results = try connection.run((step.isGuarded ? [lock] : []) + [step.page(countMax: Self.pageCountMax)])
            let pageCount = results[results.count - 1].affectedCount
            count += pageCount
            if pageCount == 0 { return count }
        }
    }

    /// Deletes the person's row, by which all others are found.
    ///
    /// - Returns: `false` if rows were written meanwhile.
    private func end(also audit: Statement, on connection: inout Connection) throws -> Bool {
        try connection.transaction { transaction in
            try transaction.run(
                "SELECT FROM realm.environment WHERE id = \(subject.environment) FOR NO KEY UPDATE")
            for step in subject.steps where step.isGuarded {
                guard try transaction.run(step.count)[0].decode(Int64.self) == 0 else { return false }
            }
            try transaction.run(subject.end + [audit])
            return true
        }
    }

    // MARK: Report

    /// The data before the erasure that the report names.
    private struct Start {
        /// The numbers of the person's objects by kind.
        let kinds: String
        let records: [String]
        let unfinished: [String]
        let imageCount: Int
    }

    private func start(on connection: inout Connection) throws -> Start {
        let results = try connection.run([
            subject.ownKinds, subject.backEndRecords, subject.unfinishedSubmissions, subject.sharedImages,
        ])
        let kinds = try results[0].decode(String.self, Int64.self).map { "\($1) \($0)" }.joined(separator: ", ")
        return Start(
            kinds: kinds, records: try results[1].decode(String.self), unfinished: try results[2].decode(String.self),
            imageCount: Int(try results[3][0].decode(Int64.self)))
    }

    private func lines(_ start: Start) -> [ErasureLine] {
        var lines: [ErasureLine] = []
        for (step, count) in zip(subject.steps, counts) where count > 0 {
            let kinds = step.table == "store.object" && step.isGuarded ? ": \(start.kinds)" : ""
            lines.append(
                ErasureLine(
                    action: step.changes == nil ? .deleted : .changed, content: step.content, count: count,
                    detail: step.table + kinds))
        }
        let others: [(action: ErasureLine.Action, counts: [Kind: Int])] = [(.deleted, deleted), (.changed, changed)]
        for (action, counts) in others {
            for (kind, count) in counts.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
                lines.append(
                    ErasureLine(
                        action: action, content: "\(kind.rawValue) in other realms", count: count,
                        detail: "store.object"))
            }
        }
        return lines + keptLines(start)
    }

    /// Returns how an object of others that has the address in a text is changed.
    private static func advice(_ kind: Kind) -> String {
        switch kind {
        case .defect: "a copy of the defect tracker: edit the record there"
        case .defectCommand: "belongs to others: they can delete it"
        default: "belongs to others: edit it"
        }
    }

    private func keptLines(_ start: Start) -> [ErasureLine] {
        var lines = kept.sorted { $0.key.rawValue < $1.key.rawValue }.map { kind, count in
            ErasureLine(
                action: .kept, content: "\(kind.rawValue) with the address in a text", count: count,
                detail: Self.advice(kind))
        }
        if start.imageCount > 0 {
            lines.append(
                ErasureLine(
                    action: .kept, content: "images", count: start.imageCount, detail: "shown by teams and tasks"))
        }
        if !start.unfinished.isEmpty {
            lines.append(
                ErasureLine(
                    action: .kept, content: "records of unfinished submissions", count: start.unfinished.count,
                    detail: "search the back end for the entries' ids", ids: start.unfinished))
        }
        lines.append(
            ErasureLine(
                action: .kept, content: "records in the back end", count: start.records.count,
                detail: "erase them there", ids: start.records))
        return lines + ErasureLine.names + ErasureLine.outside
    }
}

extension ErasureLine {
    /// Data that no command reaches.
    static var outside: [ErasureLine] {
        let days = Topics.all.map(\.retention).max().map { $0.components.seconds / 86_400 } ?? 0
        let topics = Topics.all.map(\.name).joined(separator: ", ")
        return [
            ("ids of deleted objects", "removed with the change log (compaction.keep)"),
            (
                "published messages in Kafka",
                "removed after \(days) days, the topics' retention: \(topics), and those of own kinds"
            ),
            ("backups, archived WAL, standbys' snapshots, exports", "until they expire or are deleted"),
            ("copy at the source of a move", "discard it there"),
            ("logs and traces", "until they expire"),
            ("the account at the identity provider", "block or delete it there"),
            ("copies on devices and at integrations, sent notices", "ended access; delete them there"),
        ].map { ErasureLine(action: .kept, content: $0, count: nil, detail: $1) }
    }

    /// Data about an erased person that others own, and that has no address or id.
    static var names: [ErasureLine] {
        [
            ("names in texts of others", "edit them"),
            ("names in notices of others", "removed after 90 days"),
            ("former pictures that a manager uploaded", "removed as images without a reference (retention.images)"),
            ("the login name in defects of others", "change the user in the defect tracker"),
        ].map { ErasureLine(action: .kept, content: $0, count: nil, detail: $1) }
    }
}

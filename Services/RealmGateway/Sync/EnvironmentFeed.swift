import Access
import FoundationEssentials
import Model
import NIOCore
import ObjectStore
import Postgres

/// The kinds that an integration reads.
struct KindSelection: Sendable, Equatable {
    /// The named kinds, in the order of their numbers.
    let kinds: [Kind]
    /// Whether all kinds that the environment declares, also later, are included.
    let includesOwn: Bool

    init(_ kinds: [Kind], includesOwn: Bool = false) {
        (self.kinds, self.includesOwn) = (kinds.sorted { $0.number < $1.number }, includesOwn)
    }

    /// The digest for cursors. It does not depend on the kinds that the environment declares, if all are included: a
    /// copy lacks no objects of a kind that is added. Named kinds, even all built-in ones, are another selection.
    var digest: UInt64 { Cursor.digest(of: kinds) &+ (includesOwn || kinds.count < Self.builtInCount ? 0 : 1) }

    private static let builtInCount = Kind.allCases.count(where: Permissions.isReadByIntegrations)

    /// Whether any of the kinds is included.
    func concerns(_ changed: Set<Kind>) -> Bool {
        kinds.contains(where: changed.contains)
            || includesOwn && changed.contains { OwnKind.numbers.contains($0.number) }
    }
}

/// An integration's request for the whole environment (`all`).
struct EnvironmentRequest: Sendable, Equatable {
    let kinds: KindSelection
    /// The integration's cursor; one for other kinds, or an unreadable one, counts as none.
    let cursor: Cursor?
}

/// The stream of a whole environment: first the current state of all realms in key order, then the change log.
///
/// The state is read page by page, each in its own snapshot, during concurrent writes. The result is consistent:
///
/// - It starts at the counter's position S. Every page sees everything that was committed up to S.
/// - An object that existed at S and has not changed since is on the page of its key. Each key is passed once, and a
///   page has all objects of these kinds between two keys with positions up to S.
/// - Objects above S are omitted. A change or creation during the read has a position above S and an entry in the
///   change log, which is read from S on after the pages, with its deletions. A realm that is created meanwhile, with
///   any number, has no other objects.
/// - Log entries and tombstones above S exist as long as the compaction floor is not above S. The floor is read after
///   each page; if it is above S, the download restarts (`reset`).
///
/// A cursor is therefore S and the last key, or a position. It can be used after any line and at any later time, even
/// hours later. The log is read in position order, not by key: the cost of a page depends on its entries, not on the
/// number of realms or objects. Realms are never removed, only their objects.
struct EnvironmentFeed: Sendable {
    struct Step: Sendable {
        var lines: [ByteBuffer] = []
        /// The position at which all realms are consistent after these lines.
        var checkpoint: Int64?
    }

    let kinds: KindSelection
    let digest: UInt64
    /// The counter as of the last page.
    private(set) var counter: EnvironmentCounter
    private let services: SyncServices
    private let access: AccessReader
    private let environment: EnvironmentID
    private let generation: Int64
    private var progress: SyncProgress
    /// Limits of the next page of the state: pages grow, with few large realms or many small ones.
    private var pageCount: Int
    private var realmCount = firstRealmCount
    private static let firstPageCount = 200
    private static let firstRealmCount = 16
    private static let pageBytesTarget = 1 << 20

    /// - Returns: `isReset` if the integration must discard its copy, if any.
    static func open(
        _ request: EnvironmentRequest, _ services: SyncServices, _ access: AccessReader, _ counter: EnvironmentCounter
    ) -> (feed: EnvironmentFeed, isReset: Bool) {
        let digest = request.kinds.digest
        let cursor = request.cursor?.kinds == digest ? request.cursor : nil
        let progress = SyncProgress(cursor, counter, catchUpCountMax: .max)
        let feed = EnvironmentFeed(
            kinds: request.kinds, digest: digest, counter: counter,
            services: services, access: access, environment: access.caller.environment,
            generation: counter.generation, progress: progress ?? .fresh(counter),
            pageCount: min(firstPageCount, services.limits.pageCountMax))
        return (feed, progress == nil)
    }

    /// Whether the download is complete and only the change log is read.
    var isDownloaded: Bool { progress.download == nil }

    /// Records that the integration has everything up to a position.
    mutating func advance(to position: Int64) { progress = .changeLog(position) }

    /// Reads one page.
    ///
    /// - Throws: `SyncSession.StreamEnd` if the database was restored or the integration removed.
    mutating func advance() async throws -> Step {
        switch progress {
        case .download(let download): try await readState(download)
        case .changeLog(let position): try await readChanges(after: position)
        }
    }

    private mutating func check(_ counter: EnvironmentCounter, _ access: AccessState) throws {
        guard counter.generation == generation, !access.isRemoved else { throw SyncSession.StreamEnd() }
        self.counter = counter
    }

    private mutating func reset() -> Step {
        progress = .fresh(counter)
        return Step(lines: [SyncLines.openAll(isReset: true)])
    }

    // MARK: The state

    private mutating func readState(_ download: SyncProgress.Download) async throws -> Step {
        let (feed, countMax) = (self, services.limits.pageCountMax)
        let page = try await services.pool.run { connection in try feed.page(download, on: &connection) }
        try check(page.counter, page.access)
        guard progress.isValid(for: counter) else { return reset() }
        if let key = page.next {
            var next = download
            next.key = key
            progress = .download(next)
        } else {
            progress = .changeLog(download.start)
        }
        pageCount = min(max(page.byteCount == 0 ? countMax : page.countTarget, min(16, countMax)), countMax)
        realmCount = page.isFull ? max(page.realmCount, 1) : min(realmCount * 2, services.limits.pageRealmCountMax)
        return Step(lines: page.lines)
    }

    struct StatePage: Sendable {
        let counter: EnvironmentCounter
        let access: AccessState
        let lines: [ByteBuffer]
        let byteCount: Int
        /// Number of objects for the next page, derived from the size of these.
        let countTarget: Int
        /// Number of realms with objects in the page.
        let realmCount: Int
        let isFull: Bool
        /// `nil` on the last page.
        let next: Cursor.Key?
    }

    private func page(_ download: SyncProgress.Download, on connection: inout Connection) throws -> StatePage {
        // The compaction floor is read after the page, because log entries and tombstones are removed only after it has
        // moved; so are the permissions.
        let results = try connection.run(
            [
                Feed.page(
                    in: environment, after: download.key, kinds: kinds.kinds, includingOwn: kinds.includesOwn,
                    unchangedSince: download.start, realmCountMax: realmCount, countMax: pageCount),
                EnvironmentCounter.load(environment),
            ] + access.statements)
        var lines = OrderedLines()
        var next: Cursor.Key?
        var (count, scanned, realms): (Int, Int64, Int) = (0, 0, 0)
        var lastScanned: Int32?
        for row in results[0] {
            let realm: Int32? = try row.optional(0)
            guard let realm, let number = try row.optional(2, as: Int16.self),
                let kind = try services.kinds.names.kind(number, { try connection.run($0) })
            else {
                (scanned, lastScanned) = (try row.value(4), realm)
                continue
            }
            let id: UUID = try row.value(3)
            if next?.realm != realm { realms += 1 }
            let key = Cursor.Key(realm: realm, kind: kind, id: id)
            (next, count) = (key, count + 1)
            guard let path = RealmPath(try row.value(1)), Self.isReadable(path) else { continue }
            let cursor = Cursor(generation: generation, start: download.start, position: 0, kinds: digest, key: key)
            lines.append(
                row, realm: realm, path, kind: kind, id: id, position: try row.value(4), fieldsColumn: 5, cursor)
        }
        let isFull = count == pageCount
        if !isFull {
            let isLast = scanned < Int64(realmCount)
            next = isLast ? nil : lastScanned.map { Cursor.Key(firstOf: $0 + 1) }
        }
        let finished = lines.finished()
        let bytes = finished.reduce(0) { $0 + $1.readableBytes }
        return StatePage(
            counter: try EnvironmentCounter(try counterRow(results[1])), access: try access.state(results[2...]),
            lines: finished, byteCount: bytes, countTarget: Self.pageBytesTarget / max(bytes / max(count, 1), 1),
            realmCount: realms, isFull: isFull, next: next)
    }

    private static func isReadable(_ path: RealmPath) -> Bool {
        Permissions.mayRead(path.realmClass, Access(.integration))
    }

    // MARK: The change log

    private mutating func readChanges(after position: Int64) async throws -> Step {
        let feed = self
        let page = try await services.pool.run { connection in try feed.changes(after: position, on: &connection) }
        try check(page.counter, page.access)
        guard progress.isValid(for: counter) else { return reset() }
        progress = .changeLog(page.position)
        return Step(lines: page.lines, checkpoint: page.isFull ? nil : page.position)
    }

    struct LogPage: Sendable {
        let counter: EnvironmentCounter
        let access: AccessState
        let lines: [ByteBuffer]
        /// The position up to which the log was read.
        let position: Int64
        /// There may be more, in the same transaction too.
        let isFull: Bool
    }

    /// Reads a page of the change log in one snapshot, consistent with its counter, floor and permissions.
    private func changes(after position: Int64, on connection: inout Connection) throws -> LogPage {
        let countMax = services.limits.changeCountMax
        let results = try connection.transaction(.snapshot) { transaction in
            try transaction.run(
                [
                    Feed.changes(
                        in: environment, after: position, kinds: kinds.kinds, own: kinds.includesOwn ? .all : .none,
                        countMax: countMax),
                    EnvironmentCounter.load(environment),
                ] + access.statements)
        }
        let counter = try EnvironmentCounter(try counterRow(results[1]))
        var (realms, last): (Set<Int32>, Int64) = ([], position)
        for row in results[0] {
            last = try row.value(0)
            if try row.value(6, as: Bool.self) { realms.insert(try row.value(1)) }
        }
        let paths = try services.numbers.paths(of: realms, in: environment, on: &connection)
        var lines = OrderedLines()
        for row in results[0] where try row.value(6, as: Bool.self) {
            let realm: Int32 = try row.value(1)
            guard let path = paths[realm], Self.isReadable(path) else { continue }
            let at: Int64 = try row.value(0)
            guard let kind = try services.kinds.names.kind(try row.value(2), { try connection.run($0) }) else {
                continue
            }
            lines.append(
                row, realm: realm, path, kind: kind, id: try row.value(3), position: at, fieldsColumn: 5,
                Cursor(generation: generation, start: at, position: at, kinds: digest))
        }
        let isFull = results[0].count == countMax
        return LogPage(
            counter: counter, access: try access.state(results[2...]), lines: lines.finished(),
            position: isFull ? last : max(position, counter.position), isFull: isFull)
    }
}

/// Lines in the order of their objects: a line ends at a change of realm, so that its cursor is valid for all realms.
private struct OrderedLines {
    private var lines: [ByteBuffer] = []
    private var realm: Int32?
    private var line: ObjectLine?
    private var cursor: Cursor?

    mutating func append(
        _ row: Row, realm: Int32, _ path: RealmPath, kind: Kind, id: UUID, position: Int64, fieldsColumn: Int,
        _ cursor: Cursor
    ) {
        if realm != self.realm || line?.isFull == true { end() }
        if line == nil { (line, self.realm) = (ObjectLine(path), realm) }
        line?.append(kind: kind, id: id, position: position, row: row, fieldsColumn: fieldsColumn)
        self.cursor = cursor
    }

    mutating func finished() -> [ByteBuffer] {
        end()
        return lines
    }

    private mutating func end() {
        if let cursor, let finished = line?.take(cursor) { lines.append(finished) }
        line = nil
    }
}

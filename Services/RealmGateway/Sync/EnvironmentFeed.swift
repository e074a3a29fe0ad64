import Access
import FoundationEssentials
import HTTPClient
import Model
import NIOCore
import ObjectStore
import Postgres
import ServiceRuntime

/// What an integration asks for with `all`.
struct WholeEnvironment: Sendable, Equatable {
    let kinds: [Kind]
    /// What it holds; one that is of other kinds, or cannot be read, counts as none.
    let cursor: Cursor?
}

/// The stream of a whole environment: first the present state of all realms in key order, then the change log.
///
/// The state is read page by page, each with a snapshot of its own, while others write; it is whole for all that:
///
/// - It begins at the counter's position S. What was committed up to S is seen by every page.
/// - An object that was there at S and has not changed since is on the page of its key: a key is passed once, and a
///   page holds all objects of these kinds between two keys that are not above S.
/// - What is above S is left out. Whatever changes an object, or makes one, while pages are read has a position above
///   S, and a pointer in the change log. That is read from S on once the pages are over, deletions with it. A realm
///   made meanwhile, whatever number it has, holds nothing else.
/// - The pointers and tombstones above S are there as long as the floor of compaction is not: a page whose floor is
///   above S, read after the page, begins the whole anew (`reset`).
///
/// So a cursor is S and the last key, or a position. It may be used at any line's end and any time later: all of this
/// holds as well when hours lie between two pages. The log is read in position order and never by key again: a page of
/// it costs its pointers, and not the number of realms or of objects. Realms are never removed: their objects are.
struct EnvironmentFeed: Sendable {
    struct Step: Sendable {
        var lines: [ByteBuffer] = []
        /// With the lines all realms are whole up to here.
        var checkpoint: Int64?
    }

    /// In order.
    let kinds: [Kind]
    let digest: UInt64
    /// As the last page has seen it.
    private(set) var counter: EnvironmentCounter
    private let services: SyncServices
    private let access: AccessReader
    private let environment: EnvironmentID
    private let generation: Int64
    private var progress: Progress
    /// Objects and realms of the next page of the state: pages grow, with few large realms or many small ones.
    private var pageCount: Int
    private var realmCount = firstRealmCount
    private static let firstPageCount = 200
    private static let firstRealmCount = 16
    private static let bytesWanted = 1 << 20

    /// - Returns: `isReset` when what the integration holds, if anything, must be thrown away.
    static func open(
        _ whole: WholeEnvironment, _ services: SyncServices, _ access: AccessReader, _ counter: EnvironmentCounter
    ) -> (feed: EnvironmentFeed, isReset: Bool) {
        let digest = Cursor.digest(of: whole.kinds)
        let cursor = whole.cursor?.kinds == digest ? whole.cursor : nil
        let progress = Progress(cursor, counter, catchUpCountMax: .max)
        let feed = EnvironmentFeed(
            kinds: whole.kinds.sorted { $0.number < $1.number }, digest: digest, counter: counter,
            services: services, access: access, environment: access.caller.environment,
            generation: counter.generation, progress: progress ?? .fresh(counter),
            pageCount: min(firstPageCount, services.limits.pageCountMax))
        return (feed, progress == nil)
    }

    /// Whether only the change log is left to be read.
    var isDownloaded: Bool { progress.download == nil }

    /// Everything up to here is held.
    mutating func moveOn(to position: Int64) { progress = .whole(position) }

    /// Reads one page.
    ///
    /// - Throws: `SyncSession.Ended` when the database was restored or the integration removed.
    mutating func advance() async throws -> Step {
        switch progress {
        case .download(let download): try await readState(download)
        case .whole(let position): try await readChanges(after: position)
        }
    }

    private mutating func check(_ counter: EnvironmentCounter, _ access: AccessState) throws {
        guard counter.generation == generation, !access.isRemoved else { throw SyncSession.Ended() }
        self.counter = counter
    }

    private mutating func reset() -> Step {
        progress = .fresh(counter)
        return Step(lines: [Lines.openAll(isReset: true)])
    }

    // MARK: The state

    private mutating func readState(_ begun: Progress.Download) async throws -> Step {
        let (feed, countMax) = (self, services.limits.pageCountMax)
        let page = try await services.pool.run { connection in try feed.page(begun, on: &connection) }
        try check(page.counter, page.access)
        guard progress.isGood(for: counter) else { return reset() }
        if let key = page.next {
            var next = begun
            next.key = key
            progress = .download(next)
        } else {
            progress = .whole(begun.start)
        }
        pageCount = min(max(page.byteCount == 0 ? countMax : page.countWanted, min(16, countMax)), countMax)
        realmCount = page.isFull ? max(page.realmCount, 1) : min(realmCount * 2, services.limits.pageRealmCountMax)
        return Step(lines: page.lines)
    }

    struct StatePage: Sendable {
        let counter: EnvironmentCounter
        let access: AccessState
        let lines: [ByteBuffer]
        let byteCount: Int
        /// As many objects as a page should have, by the size of these.
        let countWanted: Int
        /// Realms that have objects here.
        let realmCount: Int
        let isFull: Bool
        /// `nil`: this was the last one.
        let next: Cursor.Key?
    }

    private func page(_ download: Progress.Download, on connection: inout Connection) throws -> StatePage {
        // The floor is read after the page: pointers and tombstones go only after it has moved. So is the permission.
        let answers = try connection.run(
            [
                Feed.page(
                    in: environment, after: download.key, kinds: kinds, unchangedSince: download.start,
                    realmCountMax: realmCount, countMax: pageCount),
                EnvironmentCounter.load(environment),
            ] + access.statements)
        var lines = OrderedLines()
        var next: Cursor.Key?
        var (count, looked, realms): (Int, Int64, Int) = (0, 0, 0)
        var lastLooked: Int32?
        for row in answers[0] {
            let realm: Int32? = try row.optional(0)
            guard let realm, let kind = try row.optional(2, as: Kind.self) else {
                (looked, lastLooked) = (try row.value(4), realm)
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
            let isLast = looked < Int64(realmCount)
            next = isLast ? nil : lastLooked.map { Cursor.Key(firstOf: $0 + 1) }
        }
        let finished = lines.finished()
        let bytes = finished.reduce(0) { $0 + $1.readableBytes }
        return StatePage(
            counter: try EnvironmentCounter(try firstRow(answers[1])), access: try access.state(answers[2...]),
            lines: finished, byteCount: bytes, countWanted: Self.bytesWanted / max(bytes / max(count, 1), 1),
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
        guard progress.isGood(for: counter) else { return reset() }
        progress = .whole(page.position)
        return Step(lines: page.lines, checkpoint: page.isFull ? nil : page.position)
    }

    struct LogPage: Sendable {
        let counter: EnvironmentCounter
        let access: AccessState
        let lines: [ByteBuffer]
        /// The log was read up to here.
        let position: Int64
        /// There may be more: a transaction may go on.
        let isFull: Bool
    }

    /// One snapshot's view of a page of the change log: counter, floor, permission and pointers belong together.
    private func changes(after position: Int64, on connection: inout Connection) throws -> LogPage {
        let countMax = services.limits.changeCountMax
        let answers = try connection.transaction(.snapshot) { transaction in
            try transaction.run(
                [
                    Feed.changes(in: environment, after: position, kinds: kinds, countMax: countMax),
                    EnvironmentCounter.load(environment),
                ] + access.statements)
        }
        let counter = try EnvironmentCounter(try firstRow(answers[1]))
        var (realms, last): (Set<Int32>, Int64) = ([], position)
        for row in answers[0] {
            last = try row.value(0)
            if try row.value(6, as: Bool.self) { realms.insert(try row.value(1)) }
        }
        let paths = try services.numbers.paths(of: realms, in: environment, on: &connection)
        var lines = OrderedLines()
        for row in answers[0] where try row.value(6, as: Bool.self) {
            let realm: Int32 = try row.value(1)
            guard let path = paths[realm], Self.isReadable(path) else { continue }
            let at: Int64 = try row.value(0)
            lines.append(
                row, realm: realm, path, kind: try row.value(2), id: try row.value(3), position: at, fieldsColumn: 5,
                Cursor(generation: generation, start: at, position: at, kinds: digest))
        }
        let isFull = answers[0].count == countMax
        return LogPage(
            counter: counter, access: try access.state(answers[2...]), lines: lines.finished(),
            position: isFull ? last : max(position, counter.position), isFull: isFull)
    }
}

/// Lines that keep the order of their objects: one ends where the realm changes, so that its cursor holds for all.
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

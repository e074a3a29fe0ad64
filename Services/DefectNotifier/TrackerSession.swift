import BackendProtocol
import Compass
import Essentials
import Logging
import Model
import Synchronization

/// Reads one tracker with the environment's service account, or with a person's own login: a query of its own for each
/// reading (two for a person's), run once, read page by page, and removed with the last page.
///
/// A query takes 3 requests beside its pages: the query is made, run and removed. While a page is compared and written,
/// the next one is asked for. Once an hour, and at the first round, the folder is listed as well, and queries in it
/// that were left over are removed.
final class TrackerSession: Sendable {
    /// Queries that were made so long ago are left over: no reading takes so long.
    private static let strayAfter = Duration.seconds(3_600)
    /// How often they are looked for.
    private static let sweepInterval = Duration.seconds(3_600)

    private let compass: CompassClient
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    /// The folder that queries are made in, and when it was listed.
    private let folder = Mutex<(id: String, listedAt: Timestamp)?>(nil)
    /// The page that comes next of each scope's reading.
    private let ahead = Mutex<[DefectPoll.Scope: PageAhead]>([:])
    /// Whether rows of the history have numbers, as far as is known.
    private let hasHistoryIDs = Mutex(true)

    init(_ compass: CompassClient, logger: Logger, now: @escaping @Sendable () -> Timestamp = { Timestamp.now() }) {
        self.compass = compass
        self.logger = logger
        self.now = now
    }

    func read(_ reading: Reading) async -> ReadAnswer {
        do throws(BackendError) {
            return ReadAnswer(reading: reading, result: .success(try await page(of: reading)))
        } catch {
            return ReadAnswer(reading: reading, result: .failure(error))
        }
    }

    private func page(of reading: Reading) async throws(BackendError) -> PageRead {
        if reading.isRead { return PageRead() }
        if let open = reading.open {
            return try await page(open.pageNumber + 1, of: open.results, after: open.page, reading.scope)
        }
        let folder = try await currentFolder()
        guard reading.scope == .changes else {
            return try await firstPage(of: reading, TrackerColumns.ofDefect, folder)
        }
        guard hasHistoryIDs.withLock({ $0 }) else {
            return try await firstPage(of: reading, TrackerColumns.ofDefectsHistory, folder)
        }
        do throws(BackendError) {
            return try await firstPage(of: reading, TrackerColumns.ofHistory, folder)
        } catch {
            guard case .refused = error else { throw error }
        }
        // The refusal may be about the folder, which may have changed. Only the second one is about the columns.
        do throws(BackendError) {
            return try await firstPage(of: reading, TrackerColumns.ofHistory, try await currentFolder())
        } catch {
            guard case .refused(let messages) = error else { throw error }
            let page = try await firstPage(of: reading, TrackerColumns.ofDefectsHistory, try await currentFolder())
            hasHistoryIDs.withLock { $0 = false }
            logger.warning(
                "the tracker does not number its history; a user's equal actions of a second count as one",
                metadata: ["column": "\(TrackerColumns.historyID)", "reason": "\(messages.joined(separator: "; "))"])
            return page
        }
    }

    private func firstPage(
        of reading: Reading, _ columns: [String], _ folder: String
    ) async throws(BackendError) -> PageRead {
        let query: QueryDefinition
        do throws(BackendError) {
            query = try await compass.create(
                QueryDefinition(
                    name: TemporaryQuery.name(at: now()), folder: folder, recordType: compass.settings.recordType,
                    columns: columns.map { QueryDefinition.Column($0) }, filter: reading.filter))
        } catch {
            // The folder may be another one by now.
            self.folder.withLock { $0 = nil }
            throw error
        }
        do throws(BackendError) {
            return try await page(1, of: try await compass.run(query), after: nil, reading.scope)
        } catch {
            await remove(query.id)
            throw error
        }
    }

    private func page(
        _ number: Int, of results: ResultSet, after previous: ResultPage?, _ scope: DefectPoll.Scope
    ) async throws(BackendError) -> PageRead {
        let page: ResultPage
        do throws(BackendError) {
            if let asked = try await asked(number, of: results, scope) {
                page = asked
            } else {
                page = try await compass.page(number, of: results, after: previous)
            }
        } catch {
            if number > 1 { await remove(results.query) }
            throw error
        }
        var read = PageRead(page.rows, of: scope)
        read.unreadable += page.unreadable.map { UnreadableRow(record: $0.id ?? "", reason: $0.reason) }
        if page.isLast {
            await remove(results.query)
        } else {
            read.open = Reading.Open(results: results, pageNumber: number, page: page)
            ask(for: number + 1, of: results, after: page, scope)
        }
        return read
    }

    /// A page that is asked for before anybody waits for it, and where it belongs.
    private struct PageAhead {
        let results: String
        let number: Int
        let task: Task<Result<ResultPage, BackendError>, Never>
    }

    private func ask(for number: Int, of results: ResultSet, after page: ResultPage, _ scope: DefectPoll.Scope) {
        let task = Task { [compass] in
            do throws(BackendError) {
                return Result<ResultPage, BackendError>.success(
                    try await compass.page(number, of: results, after: page))
            } catch {
                return .failure(error)
            }
        }
        let next = PageAhead(results: results.id, number: number, task: task)
        // That of a reading which was given up is nobody's.
        ahead.withLock { $0.updateValue(next, forKey: scope) }?.task.cancel()
    }

    /// - Returns: `nil` when it was not asked for yet.
    private func asked(
        _ number: Int, of results: ResultSet, _ scope: DefectPoll.Scope
    ) async throws(BackendError) -> ResultPage? {
        let next = ahead.withLock { $0.removeValue(forKey: scope) }
        guard let next, next.results == results.id, next.number == number else {
            next?.task.cancel()
            return nil
        }
        return try await next.task.value.get()
    }

    /// What cannot be removed now is removed as a stray one.
    private func remove(_ query: String?) async {
        guard let query else { return }
        do throws(BackendError) {
            try await compass.deleteQuery(query)
        } catch {
            logger.info("a temporary query was left over", metadata: ["error": "\(error)"])
        }
    }

    /// The folder of the account's own queries.
    private func currentFolder() async throws(BackendError) -> String {
        let time = now()
        if let known = folder.withLock({ $0 }), known.listedAt.adding(Self.sweepInterval) > time { return known.id }
        guard let found = try await compass.folder(at: [Folder.personalQueries]) else {
            throw .refused(["The account has no folder named \(Folder.personalQueries)"])
        }
        let strayCount = try await compass.removeStrayQueries(
            in: found, madeBefore: time.adding(.zero - Self.strayAfter))
        if strayCount > 0 { logger.notice("removed left-over queries", metadata: ["count": "\(strayCount)"]) }
        folder.withLock { $0 = (found.id, time) }
        return found.id
    }
}

extension Reading {
    /// What is asked for.
    fileprivate var filter: QueryFilter {
        let time = QueryFilter.Condition(TrackerColumns.time, .isAfter, [since.description])
        switch (part, scope) {
        case (.everybodys, .changes): return QueryFilter(.all, [time])
        // A query without a condition is not known to be taken.
        case (.everybodys, .comparison):
            return QueryFilter(.all, [QueryFilter.Condition(TrackerColumns.number, .isAfter, ["0"])])
        case (.assigned, .changes): return QueryFilter(.all, [Self.isOwn(TrackerColumns.owner), time])
        case (.assigned, .comparison): return QueryFilter(.all, [Self.isOwn(TrackerColumns.owner)])
        case (.reported, .changes) where !mirrored.isEmpty:
            let records = QueryFilter.Condition(TrackerColumns.record, .isOneOf, mirrored)
            return QueryFilter(
                .all, [time], children: [QueryFilter(.any, [Self.isOwn(TrackerColumns.submitter), records])])
        case (.reported, .changes): return QueryFilter(.all, [Self.isOwn(TrackerColumns.submitter), time])
        case (.reported, .comparison): return QueryFilter(.all, [Self.isOwn(TrackerColumns.submitter)])
        }
    }

    private static func isOwn(_ field: String) -> QueryFilter.Condition {
        QueryFilter.Condition(field, .equals, [QueryFilter.currentUser])
    }
}

extension Timestamp {
    fileprivate func adding(_ duration: Duration) -> Timestamp {
        Timestamp(millisecondsSinceEpoch: millisecondsSinceEpoch + duration.milliseconds)
    }
}

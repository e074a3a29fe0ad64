import BackendProtocol
import Compass
import Essentials
import Logging
import Model
import Synchronization

/// Reads one tracker with the environment's service account, or with a person's own login. Each poll creates one query
/// (two in a person's poll), runs it once, reads its pages, and deletes it with the last page.
///
/// A query takes 3 requests in addition to its pages: create, run, delete. While a page is compared and written, the
/// next one is prefetched. At the first poll, and then once an hour, the session also lists the folder and deletes its
/// stray queries.
final class TrackerSession: Sendable {
    /// Age at which a query counts as stray. Every poll takes less time.
    private static let strayAfter = Duration.seconds(3_600)
    /// Interval of the search for stray queries.
    private static let sweepInterval = Duration.seconds(3_600)

    private let compass: CompassClient
    private let logger: Logger
    private let now: @Sendable () -> Timestamp
    /// The folder of the queries, and the time when it was listed.
    private let folder = Mutex<(id: String, listedAt: Timestamp)?>(nil)
    /// The prefetched page of each scope's poll.
    private let prefetches = Mutex<[DefectPoll.Scope: PagePrefetch]>([:])
    /// Whether rows of the history have numbers, as far as detected.
    private let hasHistoryIDs = Mutex(true)

    init(_ compass: CompassClient, logger: Logger, now: @escaping @Sendable () -> Timestamp = { Timestamp.now() }) {
        self.compass = compass
        self.logger = logger
        self.now = now
    }

    func read(_ request: PageRequest) async -> PageResponse {
        do throws(BackendError) {
            return PageResponse(request: request, result: .success(try await page(of: request)))
        } catch {
            return PageResponse(request: request, result: .failure(error))
        }
    }

    private func page(of request: PageRequest) async throws(BackendError) -> TrackerPage {
        if request.allPagesRead { return TrackerPage() }
        if let cursor = request.cursor {
            return try await page(cursor.pageNumber + 1, of: cursor.results, after: cursor.page, request.scope)
        }
        let folder = try await currentFolder()
        guard request.scope == .changes else {
            return try await firstPage(of: request, TrackerColumns.ofDefect, folder)
        }
        guard hasHistoryIDs.withLock({ $0 }) else {
            return try await firstPage(of: request, TrackerColumns.ofDefectsHistory, folder)
        }
        do throws(BackendError) {
            return try await firstPage(of: request, TrackerColumns.ofHistory, folder)
        } catch {
            guard case .refused = error else { throw error }
        }
        // The folder may have changed, which also causes a rejection. Only a second rejection is due to the columns.
        do throws(BackendError) {
            return try await firstPage(of: request, TrackerColumns.ofHistory, try await currentFolder())
        } catch {
            guard case .refused(let messages) = error else { throw error }
            let page = try await firstPage(of: request, TrackerColumns.ofDefectsHistory, try await currentFolder())
            hasHistoryIDs.withLock { $0 = false }
            logger.warning(
                "tracker history has no row numbers",
                metadata: ["column": "\(TrackerColumns.historyID)", "reason": "\(messages.joined(separator: "; "))"])
            return page
        }
    }

    private func firstPage(
        of request: PageRequest, _ columns: [String], _ folder: String
    ) async throws(BackendError) -> TrackerPage {
        let query: QueryDefinition
        do throws(BackendError) {
            query = try await compass.create(
                QueryDefinition(
                    name: TemporaryQuery.name(at: now()), folder: folder, recordType: compass.settings.recordType,
                    columns: columns.map { QueryDefinition.Column($0) }, filter: request.filter))
        } catch {
            // The folder may have changed.
            self.folder.withLock { $0 = nil }
            throw error
        }
        do throws(BackendError) {
            return try await page(1, of: try await compass.run(query), after: nil, request.scope)
        } catch {
            await remove(query.id)
            throw error
        }
    }

    private func page(
        _ number: Int, of results: ResultSet, after previous: ResultPage?, _ scope: DefectPoll.Scope
    ) async throws(BackendError) -> TrackerPage {
        let page: ResultPage
        do throws(BackendError) {
            if let prefetched = try await prefetchedPage(number, of: results, scope) {
                page = prefetched
            } else {
                page = try await compass.page(number, of: results, after: previous)
            }
        } catch {
            if number > 1 { await remove(results.query) }
            throw error
        }
        var read = TrackerPage(page.rows, of: scope)
        read.unreadable += page.unreadable.map { UnreadableRow(record: $0.id ?? "", reason: $0.reason) }
        if page.isLast {
            await remove(results.query)
        } else {
            read.cursor = PageRequest.ResultCursor(results: results, pageNumber: number, page: page)
            prefetch(number + 1, of: results, after: page, scope)
        }
        return read
    }

    /// A page that was requested ahead of its use.
    private struct PagePrefetch {
        let results: String
        let number: Int
        let task: Task<Result<ResultPage, BackendError>, Never>
    }

    private func prefetch(_ number: Int, of results: ResultSet, after page: ResultPage, _ scope: DefectPoll.Scope) {
        let task = Task { [compass] in
            do throws(BackendError) {
                return Result<ResultPage, BackendError>.success(
                    try await compass.page(number, of: results, after: page))
            } catch {
                return .failure(error)
            }
        }
        let next = PagePrefetch(results: results.id, number: number, task: task)
        // The previous prefetch belongs to an abandoned poll.
        prefetches.withLock { $0.updateValue(next, forKey: scope) }?.task.cancel()
    }

    /// - Returns: `nil` if the page was not prefetched.
    private func prefetchedPage(
        _ number: Int, of results: ResultSet, _ scope: DefectPoll.Scope
    ) async throws(BackendError) -> ResultPage? {
        let next = prefetches.withLock { $0.removeValue(forKey: scope) }
        guard let next, next.results == results.id, next.number == number else {
            next?.task.cancel()
            return nil
        }
        return try await next.task.value.get()
    }

    /// Deletes a query. If this fails, it is deleted later as a stray query.
    private func remove(_ query: String?) async {
        guard let query else { return }
        do throws(BackendError) {
            try await compass.deleteQuery(query)
        } catch {
            logger.info("cannot delete a temporary query", metadata: ["error": "\(error)"])
        }
    }

    /// Returns the folder of the account's personal queries.
    private func currentFolder() async throws(BackendError) -> String {
        let time = now()
        if let current = folder.withLock({ $0 }), current.listedAt.adding(Self.sweepInterval) > time {
            return current.id
        }
        guard let listed = try await compass.folder(at: [Folder.personalQueries]) else {
            throw .refused(["The account has no folder named \(Folder.personalQueries)"])
        }
        let strayCount = try await compass.removeStrayQueries(
            in: listed, madeBefore: time.adding(.zero - Self.strayAfter))
        if strayCount > 0 { logger.notice("deleted stray queries", metadata: ["count": "\(strayCount)"]) }
        folder.withLock { $0 = (listed.id, time) }
        return listed.id
    }
}

extension PageRequest {
    /// The filter of the query.
    fileprivate var filter: QueryFilter {
        let time = QueryFilter.Condition(TrackerColumns.time, .isAfter, [since.description])
        switch (subset, scope) {
        case (.all, .changes): return QueryFilter(.all, [time])
        // It is undocumented whether a query may have no condition.
        case (.all, .comparison):
            return QueryFilter(.all, [QueryFilter.Condition(TrackerColumns.number, .isAfter, ["0"])])
        case (.assigned, .changes): return QueryFilter(.all, [Self.isOwn(TrackerColumns.owner), time])
        case (.assigned, .comparison): return QueryFilter(.all, [Self.isOwn(TrackerColumns.owner)])
        case (.reported, .changes) where !mirroredRecords.isEmpty:
            let records = QueryFilter.Condition(TrackerColumns.record, .isOneOf, mirroredRecords)
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

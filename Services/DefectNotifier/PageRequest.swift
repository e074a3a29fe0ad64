import BackendConnections
import BackendProtocol
import Compass
import FoundationEssentials
import Model

/// A request for one page of a tracker's result set, with the state from the pages before it. A worker sends it and
/// gets it back with the page.
struct PageRequest: Sendable {
    /// A query's result set, and the last page read from it.
    struct ResultCursor: Sendable {
        let results: ResultSet
        let pageNumber: Int
        let page: ResultPage
    }

    /// The defects that a query selects. A person's own login selects those that concern the person, with the queries
    /// of the vendor's sample app. The owner or submitter in the rows therefore identifies the person.
    enum DefectSubset {
        /// All defects: the account's only query.
        case all
        /// Defects assigned to the person.
        case assigned
        /// Defects that the person reported. In a history poll also those that they have a mirror of, which may have
        /// another owner now.
        case reported
    }

    let scope: DefectPoll.Scope
    /// The login that reads; `nil`: the environment's account.
    let own: OwnLoginReader?
    var subset: DefectSubset
    let tracker: TrackerIDs
    /// The position of the poll.
    let position: Int64
    /// The environment's position when the first page was requested. Objects written later may be newer than the page.
    let startPosition: Int64
    /// In a history poll, the stored watermark that the read starts from; `nil`: there is none yet.
    let watermark: String?
    /// In a history poll, selects only later rows.
    let since: CompassTime
    /// In a history poll, the lowest watermark after the last page, in seconds of the tracker's clock.
    let watermarkMin: Int
    /// Whether this is the first read of the tracker, which writes no notices.
    let isInitialRead: Bool
    /// In a person's history poll, the records that they have mirrors of, and their login names as their rows have
    /// them.
    var mirroredRecords: [String] = []
    var loginNames: Set<String> = []
    /// `nil`: the first page is requested.
    var cursor: ResultCursor?
    /// The newest time of the earlier pages, in seconds of the tracker's clock.
    var newest: Int?
    /// In a comparison, the defects of the earlier pages that have a mirror.
    var presentDefects: Set<UUID> = []
    /// Whether all rows so far were readable. Otherwise absent defects do not count as deleted.
    var allRowsReadable = true
    /// Whether all pages are read. Obsolete mirrors are then removed without another request.
    var allPagesRead = false
}

/// The readable content of one page.
struct TrackerPage: Sendable {
    /// Rows of a history poll.
    var history: [HistoryRow] = []
    /// Rows of a comparison.
    var defects: [TrackedDefect] = []
    var unreadable: [UnreadableRow] = []
    /// `nil`: it is the last page.
    var cursor: PageRequest.ResultCursor?

    init() {}

    /// Decodes the rows of a page. An unreadable row does not prevent the others.
    init(_ rows: [ResultRow], of scope: DefectPoll.Scope) {
        for row in rows {
            do throws(UnreadableRow) {
                switch scope {
                case .changes: history.append(try HistoryRow(row))
                case .comparison: defects.append(try TrackedDefect(row))
                }
            } catch {
                unreadable.append(error)
            }
        }
    }
}

/// The response to a page request.
struct PageResponse: Sendable {
    let request: PageRequest
    let result: Result<TrackerPage, BackendError>
}

import BackendConnections
import BackendProtocol
import Compass
import FoundationEssentials
import Model

/// A page of the tracker's answer that is to be read, with all that is known of the pages before it: what a worker
/// asks for, and gets back with the page.
struct Reading: Sendable {
    /// A query that was run, and the page of it that was read last.
    struct Open: Sendable {
        let results: ResultSet
        let pageNumber: Int
        let page: ResultPage
    }

    /// Whose defects a query is about. A person's own login asks for what concerns them alone, by queries as the
    /// vendor's sample app has them; so what the rows say of their owner, or of who reported them, names the person.
    enum Part {
        /// All there are: the account's only query.
        case everybodys
        /// Those assigned to the person.
        case assigned
        /// Those they reported; of changes also those that they have a mirror of, and that may be somebody else's now.
        case reported
    }

    let scope: DefectPoll.Scope
    /// Whose login reads it; `nil`: the environment's account.
    let own: OwnReader?
    var part: Part
    let tracker: TrackerIDs
    /// That of the poll it is made for.
    let position: Int64
    /// The environment's position when the first page was asked for: what was written later may be newer than it.
    let askedAt: Int64
    /// Of changes, the watermark that is read from, as it is stored; `nil`: there is none, and this makes the first.
    let watermark: String?
    /// Of changes: only what happened after this is asked for.
    let since: CompassTime
    /// Of changes, the watermark that there is at least when all is read, in seconds of the tracker's clock.
    let reached: Int
    /// Whether nothing was read before: then nothing is news.
    let isFirst: Bool
    /// Of a person's changes, the records that they have mirrors of, and the person's login name as their rows have it.
    var mirrored: [String] = []
    var names: Set<String> = []
    /// `nil`: the first page is to be read.
    var open: Open?
    /// The newest time of the pages before, in seconds of the tracker's clock.
    var newest: Int?
    /// Of a comparison, the defects of the pages before that somebody has a mirror of.
    var found: Set<UUID> = []
    /// Whether every row so far could be understood: else nothing is concluded from what was not found.
    var isSure = true
    /// All pages are read, and what is no more is being removed: there is nothing to ask for.
    var isRead = false
}

/// What a page says.
struct PageRead: Sendable {
    /// Of changes.
    var history: [HistoryRow] = []
    /// Of a comparison.
    var defects: [TrackedDefect] = []
    var unreadable: [UnreadableRow] = []
    /// `nil`: no page follows.
    var open: Reading.Open?

    init() {}

    /// Understands the rows of a page. One that cannot be understood does not hold up the others.
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

/// What came of a call.
struct ReadAnswer: Sendable {
    let reading: Reading
    let result: Result<PageRead, BackendError>
}

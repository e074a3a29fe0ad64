import FoundationEssentials
import Model
import Realms

/// How far one environment is read, sent and confirmed. A value: it knows neither PostgreSQL nor Kafka.
struct RelayProgress {
    /// Pages on their way to the broker.
    static let pagesMax = 8

    private(set) var task: RelayTask
    /// The last position read.
    private var readPosition: Int64
    /// The last position that was confirmed, and is or will be stored.
    private(set) var storedPosition: Int64
    private var pages: [Int: Page] = [:]
    /// Pages are numbered on when the work begins anew: reports of pages from before find none.
    private var firstPage: Int
    private(set) var nextPage: Int
    /// Where the republishing of all objects stands; `nil` when its last page was read, and without it.
    private var key: ObjectPlace?

    /// The key of an object inside its environment, in the order of its table.
    struct ObjectPlace: Equatable {
        let realm: Int32
        let kind: String
        let id: UUID
    }

    /// A page to read.
    struct Request: Equatable {
        enum Start: Equatable {
            case changes(after: Int64)
            case objects(after: ObjectPlace)
        }
        let environment: EnvironmentID
        let start: Start
    }

    private struct Page {
        let through: Int64
        var unconfirmedCount: Int
        let endsRepublishing: Bool
    }

    init(_ task: RelayTask) { self.init(task, page: 0) }

    private init(_ task: RelayTask, page: Int) {
        self.task = task
        readPosition = task.relayedPosition
        storedPosition = task.relayedPosition
        firstPage = page
        nextPage = page
        if task.isRepublishing { key = ObjectPlace(realm: .min, kind: "", id: .zero) }
    }

    /// Takes in how things stand by the database. Another epoch begins the work anew.
    ///
    /// While all is published again the counter stays as it was when that began: what changed since follows from the
    /// change log, from there on.
    mutating func update(_ news: RelayTask) {
        if task.epoch != news.epoch || task.isRepublishing != news.isRepublishing {
            self = RelayProgress(news, page: nextPage)
        } else if !task.isRepublishing {
            task = news
        }
    }

    /// Whether something is on its way to the broker.
    var isInFlight: Bool { firstPage < nextPage }

    /// The next page to read; `nil` when nothing is known to be there, or enough is on its way.
    var request: Request? {
        guard nextPage - firstPage < Self.pagesMax else { return nil }
        if task.isRepublishing {
            return key.map { Request(environment: task.environment, start: .objects(after: $0)) }
        }
        guard readPosition < task.counterPosition else { return nil }
        return Request(environment: task.environment, start: .changes(after: readPosition))
    }

    /// Counts a page of the change log that was read.
    ///
    /// - Parameter last: Its last position. An empty page reaches the counter: reserved positions that nothing was
    ///   written at leave no pointer.
    mutating func readChanges(through last: Int64?, sendCount: Int) {
        readPosition = last ?? task.counterPosition
        add(Page(through: readPosition, unconfirmedCount: sendCount, endsRepublishing: false))
    }

    /// Counts a page of all objects that was read.
    ///
    /// - Parameter last: `nil`: it was the last page.
    mutating func readObjects(through last: ObjectPlace?, sendCount: Int) {
        key = last
        add(Page(through: task.counterPosition, unconfirmedCount: sendCount, endsRepublishing: last == nil))
    }

    private mutating func add(_ page: Page) {
        pages[nextPage] = page
        nextPage += 1
    }

    /// The broker confirmed messages of a page.
    mutating func confirm(_ count: Int, page: Int) { pages[page]?.unconfirmedCount -= count }

    /// How far everything is confirmed without a gap, when that is further than before.
    mutating func takeConfirmed() -> Confirmed? {
        var reached: Int64?
        var isRepublished = false
        while let page = pages[firstPage], page.unconfirmedCount == 0 {
            pages[firstPage] = nil
            firstPage += 1
            reached = page.through
            isRepublished = page.endsRepublishing
        }
        guard let reached, isRepublished || !task.isRepublishing else { return nil }
        let confirmed = Confirmed(
            environment: task.environment, epoch: task.epoch, from: storedPosition, to: reached,
            isRepublished: isRepublished)
        storedPosition = reached
        return confirmed
    }

    /// What is to be stored.
    struct Confirmed: Equatable {
        let environment: EnvironmentID
        let epoch: Int64
        let from: Int64
        let to: Int64
        /// Every routed object was published again.
        let isRepublished: Bool
    }
}

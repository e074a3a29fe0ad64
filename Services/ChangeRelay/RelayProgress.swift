import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore

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
    /// A topic that is published again beside what changes, and where that stands; likewise.
    private var again: (request: Republish.Request, key: ObjectPlace?)?
    /// Topics that were published again, all of it confirmed.
    private var republished: [Republish.Request] = []

    /// The key of an object inside its environment, in the order of its table.
    struct ObjectPlace: Equatable {
        let realm: Int32
        let kind: Int16
        let id: UUID
        static let first = ObjectPlace(realm: .min, kind: 0, id: .zero)
    }

    /// A page to read.
    struct Request: Equatable {
        enum Start: Equatable {
            case changes(after: Int64)
            case objects(after: ObjectPlace)
            /// Those of one topic.
            case topic(String, after: ObjectPlace)
        }
        let environment: EnvironmentID
        let start: Start
    }

    private struct Page {
        enum Content {
            case changes(through: Int64)
            case objects(isLast: Bool)
            case topic(Republish.Request, isLast: Bool)
        }
        let content: Content
        var unconfirmedCount: Int
    }

    init(_ task: RelayTask) { self.init(task, page: 0) }

    private init(_ task: RelayTask, page: Int) {
        self.task = task
        readPosition = task.relayedPosition
        storedPosition = task.relayedPosition
        firstPage = page
        nextPage = page
        if task.isRepublishing { key = .first }
        again = task.again.map { ($0, .first) }
    }

    /// Takes in how things stand by the database. Another generation or epoch begins the work anew.
    ///
    /// While all is published again the counter stays as it was when that began: what changed since follows from the
    /// change log, from there on.
    mutating func update(_ news: RelayTask) {
        let isSameRun = (task.generation, task.epoch) == (news.generation, news.epoch)
        if !isSameRun || task.isRepublishing != news.isRepublishing {
            self = RelayProgress(news, page: nextPage)
            return
        }
        if again?.request != news.again { again = news.again.map { ($0, .first) } }
        if !task.isRepublishing { task = news }
    }

    /// Whether something is on its way to the broker.
    var isInFlight: Bool { firstPage < nextPage }

    /// The next page to read; `nil` when nothing is known to be there, or enough is on its way.
    ///
    /// What changes and what is published again take turns. A key's messages stay in the order of its positions: what
    /// is read later is newer or the same, and is sent later.
    var request: Request? {
        guard nextPage - firstPage < Self.pagesMax else { return nil }
        let starts = starts
        let start = starts.count > 1 && !nextPage.isMultiple(of: 2) ? starts.last : starts.first
        return start.map { Request(environment: task.environment, start: $0) }
    }

    private var starts: [Request.Start] {
        if task.isRepublishing { return key.map { [.objects(after: $0)] } ?? [] }
        var starts: [Request.Start] = []
        if readPosition < task.counterPosition { starts.append(.changes(after: readPosition)) }
        if let again, let key = again.key { starts.append(.topic(again.request.topic, after: key)) }
        return starts
    }

    /// Whether a page that was asked for goes on where this stands.
    func awaits(_ request: Request) -> Bool { starts.contains(request.start) }

    /// Counts a page of the change log that was read.
    ///
    /// - Parameter last: Its last position. An empty page reaches the counter: reserved positions that nothing was
    ///   written at leave no pointer.
    mutating func readChanges(through last: Int64?, sendCount: Int) {
        readPosition = last ?? task.counterPosition
        add(Page(content: .changes(through: readPosition), unconfirmedCount: sendCount))
    }

    /// Counts a page of all objects that was read.
    ///
    /// - Parameter last: `nil`: it was the last page.
    mutating func readObjects(through last: ObjectPlace?, sendCount: Int) {
        key = last
        add(Page(content: .objects(isLast: last == nil), unconfirmedCount: sendCount))
    }

    /// Counts a page of the objects of the topic that is published again.
    mutating func readTopic(through last: ObjectPlace?, sendCount: Int) {
        guard let request = again?.request else { return }
        again?.key = last
        add(Page(content: .topic(request, isLast: last == nil), unconfirmedCount: sendCount))
    }

    private mutating func add(_ page: Page) {
        pages[nextPage] = page
        nextPage += 1
    }

    /// The broker confirmed messages of a page.
    ///
    /// - Returns: Whether it has confirmed all of it; so does a page from before the work began anew.
    @discardableResult
    mutating func confirm(_ count: Int, page: Int) -> Bool {
        pages[page]?.unconfirmedCount -= count
        return pages[page].map { $0.unconfirmedCount == 0 } ?? true
    }

    /// How far everything is confirmed without a gap, when that is further than before.
    mutating func takeConfirmed() -> Confirmed? {
        var reached: Int64?
        var isRepublished = false
        while let page = pages[firstPage], page.unconfirmedCount == 0 {
            pages[firstPage] = nil
            firstPage += 1
            switch page.content {
            case .changes(let through): reached = through
            case .objects(let isLast):
                if isLast { (reached, isRepublished) = (task.counterPosition, true) }
            case .topic(let request, let isLast):
                if isLast { republished.append(request) }
            }
        }
        guard let reached else { return nil }
        let confirmed = Confirmed(
            environment: task.environment, generation: task.generation, epoch: task.epoch, from: storedPosition,
            to: reached, isRepublished: isRepublished)
        storedPosition = reached
        return confirmed
    }

    /// The topics that were published again since the last call.
    mutating func takeRepublished() -> [Republish.Request] {
        defer { republished = [] }
        return republished
    }

    /// What is to be stored.
    struct Confirmed: Equatable {
        let environment: EnvironmentID
        let generation: Int64
        let epoch: Int64
        let from: Int64
        let to: Int64
        /// Every routed object was published again.
        let isRepublished: Bool
    }
}

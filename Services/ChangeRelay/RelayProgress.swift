import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore

/// The read, sent and confirmed progress of one environment. A pure value, independent of PostgreSQL and Kafka.
struct RelayProgress {
    /// Maximum number of pages in flight to the broker.
    static let pagesMax = 8

    private(set) var task: RelayTask
    /// The last position read.
    private var readPosition: Int64
    /// The last confirmed position, which is or will be stored.
    private(set) var storedPosition: Int64
    private var pages: [Int: Page] = [:]
    /// Page numbers continue after a reset, so that reports of earlier pages match none.
    private var firstPage: Int
    private(set) var nextPage: Int
    /// The progress of republishing all objects; `nil` after its last page, and without republication.
    private var key: ObjectCursor?
    /// A topic that is republished alongside changes, with its progress.
    private var republish: (request: Republish.Request, key: ObjectCursor?)?
    /// Topics whose republication is confirmed completely.
    private var republished: [Republish.Request] = []

    /// The key of an object inside its environment, in the order of its table.
    struct ObjectCursor: Equatable {
        let realm: Int32
        let kind: Int16
        let id: UUID
        static let first = ObjectCursor(realm: .min, kind: 0, id: .zero)
    }

    /// A page to read.
    struct Request: Equatable {
        enum Start: Equatable {
            case changes(after: Int64)
            case objects(after: ObjectCursor)
            /// The objects of one topic.
            case topic(String, after: ObjectCursor)
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

    /// - Parameter page: The number of the first page.
    init(_ task: RelayTask, page: Int = 0) {
        self.task = task
        readPosition = task.relayedPosition
        storedPosition = task.relayedPosition
        firstPage = page
        nextPage = page
        if task.isRepublishing { key = .first }
        republish = task.republish.map { ($0, .first) }
    }

    /// Updates the state from the database. A new generation or epoch resets the progress.
    ///
    /// During a republication of all objects the counter stays at its initial value; later changes follow from the
    /// change log.
    mutating func update(_ newTask: RelayTask) {
        let isSameRun = (task.generation, task.epoch) == (newTask.generation, newTask.epoch)
        if !isSameRun || task.isRepublishing != newTask.isRepublishing {
            self = RelayProgress(newTask, page: nextPage)
            return
        }
        if republish?.request != newTask.republish { republish = newTask.republish.map { ($0, .first) } }
        if !task.isRepublishing { task = newTask }
    }

    /// Whether pages are in flight to the broker.
    var isInFlight: Bool { firstPage < nextPage }

    /// The next page to read; `nil` if no data is available, or the maximum is in flight.
    ///
    /// Changes and republication alternate. A key's messages stay in position order: an object that is read later is
    /// newer or unchanged, and is sent later.
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
        if let republish, let key = republish.key { starts.append(.topic(republish.request.topic, after: key)) }
        return starts
    }

    /// Whether a requested page continues the current progress.
    func awaits(_ request: Request) -> Bool { starts.contains(request.start) }

    /// Records a page of the change log that was read.
    ///
    /// - Parameter last: Its last position. An empty page extends to the counter: reserved positions without a write
    ///   have no pointer.
    mutating func readChanges(through last: Int64?, sendCount: Int) {
        readPosition = last ?? task.counterPosition
        add(Page(content: .changes(through: readPosition), unconfirmedCount: sendCount))
    }

    /// Records a page of all objects that was read.
    ///
    /// - Parameter last: The last key; `nil` for the last page.
    mutating func readObjects(through last: ObjectCursor?, sendCount: Int) {
        key = last
        add(Page(content: .objects(isLast: last == nil), unconfirmedCount: sendCount))
    }

    /// Records a page of the objects of the republished topic.
    mutating func readTopic(through last: ObjectCursor?, sendCount: Int) {
        guard let request = republish?.request else { return }
        republish?.key = last
        add(Page(content: .topic(request, isLast: last == nil), unconfirmedCount: sendCount))
    }

    private mutating func add(_ page: Page) {
        pages[nextPage] = page
        nextPage += 1
    }

    /// Records that the broker confirmed messages of a page.
    ///
    /// - Returns: Whether the page is confirmed completely; also true for a page from before a reset.
    @discardableResult mutating func confirm(_ count: Int, page: Int) -> Bool {
        pages[page]?.unconfirmedCount -= count
        return pages[page].map { $0.unconfirmedCount == 0 } ?? true
    }

    /// Returns the position up to which everything is confirmed, if it has advanced.
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

    /// Returns the topics whose republication was completed since the last call.
    mutating func takeRepublished() -> [Republish.Request] {
        defer { republished = [] }
        return republished
    }

    /// A confirmed position to be stored.
    struct Confirmed: Equatable {
        let environment: EnvironmentID
        let generation: Int64
        let epoch: Int64
        let from: Int64
        let to: Int64
        /// Whether all objects were republished.
        let isRepublished: Bool
    }
}

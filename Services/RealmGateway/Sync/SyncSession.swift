import Access
import Essentials
import HTTPClient
import Identity
import Model
import NIOCore
import ObjectStore
import Postgres
import ServiceRuntime
import Telemetry

/// What sessions share; each holds no more of it than a reference.
final class SyncServices: Sendable {
    let pool: Pool
    let numbers: RealmNumbers
    let hub: LiveHub
    let limits: GatewayLimits

    init(pool: Pool, numbers: RealmNumbers, hub: LiveHub, limits: GatewayLimits) {
        self.pool = pool
        self.numbers = numbers
        self.hub = hub
        self.limits = limits
    }
}

/// What one device is to be told: it brings the realms the person may open up to date, and then keeps them so.
///
/// It writes nothing by itself; see ``SyncStream``, the only one that calls it, and waits for each answer.
actor SyncSession {
    nonisolated let services: SyncServices
    nonisolated let environment: EnvironmentID
    nonisolated let isLive: Bool
    nonisolated let outbox: SendBuffer
    nonisolated let access: AccessReader
    private let expires: Int64
    private let generation: Int64
    /// The realms the device names: those it may open only some day are opened then.
    private let named: [RealmPath]
    /// No others are opened.
    private let isNarrow: Bool
    /// What the last snapshot permitted.
    private var state: AccessState
    private var realms: [OpenRealm] = []
    /// What an integration follows instead of realms.
    private var feed: Feed?
    /// The live reader knows of this one.
    private var isFollowed = false
    /// Realms that may be opened once they are there; nothing tells of that, so they are looked for now and then.
    private var absent: Set<RealmPath> = []
    private var lookedAt = ContinuousClock.now
    /// The realms that the live reader hands on, by number.
    private var joined: [Int32] = []
    /// Cursors of the request that were not used yet.
    private var cursors: [String: Cursor?]
    /// The device holds everything up to here; below 0: it was told of none yet.
    private var checkpoint: Int64 = -1
    /// Objects of the next page of a download: pages grow.
    private var pageCount = firstPageCount
    private static let firstPageCount = 200
    /// Lines that go out with the next write, so that a short answer is one packet.
    private var pending: [ByteBuffer] = []

    /// It is apart: those who have none, which are nearly all, are kept without room for it.
    private final class Feed {
        var state: EnvironmentFeed
        init(_ state: EnvironmentFeed) { self.state = state }
    }

    /// What was read in one go.
    struct Step: Sendable {
        let lines: [ByteBuffer]
        /// Whether the device is up to date with it.
        let isDone: Bool
    }

    /// What is done about something that has come.
    enum Answer: Sendable {
        /// The lines are written; after them the device may have to catch up.
        case write([ByteBuffer], isBehind: Bool)
        case end
    }

    /// Why a stream ends before its time. The device connects again and goes on from its cursors.
    struct Ended: Error {}

    /// Reads where the environment and the caller stand, so that a database that is away, or an integration that is,
    /// is an answer with a status.
    init(_ services: SyncServices, _ login: Login, request: SyncRequest, outbox: SendBuffer) async throws {
        let (caller, numbers) = (login.caller, services.numbers)
        let named = request.named
        self.services = services
        self.named = named
        isNarrow = request.only != nil
        environment = caller.environment
        state = AccessState(caller)
        expires = login.expires
        isLive = request.isLive
        self.outbox = outbox
        cursors = request.cursors
        let (access, counter) = try await services.pool.run { connection in
            let access = try AccessReader(caller, named: named, numbers, on: &connection)
            let answers = try connection.run([EnvironmentCounter.load(caller.environment)] + access.statements)
            guard try !access.state(answers[1...]).isRemoved else { throw Problems.keyUnknown }
            return (access, try EnvironmentCounter(try firstRow(answers[0])))
        }
        self.access = access
        generation = counter.generation
        if let whole = request.whole {
            let (feed, isReset) = EnvironmentFeed.open(whole, services, access, counter)
            self.feed = Feed(feed)
            pending = [Lines.openAll(isReset: isReset)]
        }
    }

    // MARK: Catching up

    /// Reads the next of what is missing, until one snapshot has nothing more, and then its checkpoint.
    func next() async throws -> Step {
        let isDone = try await advance()
        return Step(lines: taken(), isDone: isDone)
    }

    /// Reads one page of what is missing.
    ///
    /// - Returns: Whether the device is up to date with it.
    private func advance() async throws -> Bool {
        if feed != nil { return try await advanceFeed() }
        if let index = realms.firstIndex(where: { $0.progress.download != nil }) {
            try await download(index)
            return false
        }
        outbox.clear()
        let page = try await readChanges()
        // The live reader hands on what comes from here: the last snapshot is taken after it was asked to.
        guard try await !open(page) else {
            joined = realms.map(\.number)
            if isLive {
                isFollowed = true
                services.hub.join(outbox, in: environment, realms: realms + watched, from: page.counter)
            }
            return false
        }
        guard page.isRead, realms.allSatisfy({ $0.progress.download == nil }) else { return false }
        pending += page.lines
        for index in realms.indices {
            guard case .whole(let held) = realms[index].progress else { continue }
            realms[index].progress = .whole(max(held, page.position))
        }
        if page.isFull { return false }
        add(checkpoint: page.counter.position)
        return true
    }

    /// As ``advance()``, of the whole environment.
    private func advanceFeed() async throws -> Bool {
        guard var feed = self.feed?.state else { return true }
        if feed.isDownloaded {
            // Who is told from here on reads what is new with the next snapshot, or is told again.
            if isLive, !isFollowed {
                isFollowed = true
                services.hub.join(outbox, in: environment, kinds: feed.kinds, from: feed.counter)
            }
            outbox.clear()
        }
        let step = try await feed.advance()
        self.feed?.state = feed
        pending += step.lines
        // Nothing new: it was told of something that the snapshot before this one had already.
        if let position = step.checkpoint, position > checkpoint { add(checkpoint: position) }
        return step.checkpoint != nil
    }

    private func readChanges() async throws -> ChangePage {
        let (realms, access, environment, limits) = (realms, access, environment, services.limits)
        let page = try await services.pool.run { connection in
            try ChangePage.read(realms, access: access, in: environment, limits: limits, on: &connection)
        }
        guard page.counter.generation == generation, !page.access.isRemoved else { throw Ended() }
        return page
    }

    /// Realms that say what may be opened and are not open themselves, since the device did not name them: what it may
    /// open is heard of all the same, and nothing of them is handed on.
    private var watched: [OpenRealm] {
        guard isNarrow, let own = access.caller.own else { return [] }
        let numbers = [own: access.own, .common: access.common]
        return numbers.filter { !joined.contains($0.value) }.map {
            OpenRealm(path: $0.key, number: $0.value, progress: .whole(0))
        }
    }

    /// Opens and closes realms by what the snapshot permits, and begins downloads where the change log will not do.
    ///
    /// - Returns: Whether other realms are open than the live reader hands on.
    private func open(_ page: ChangePage) async throws -> Bool {
        state = page.access
        let permitted = state.opened(named: named, isNarrow: isNarrow)
        let isPermitted = Set(permitted)
        for realm in realms where !isPermitted.contains(realm.path) {
            pending.append(Lines.closed(realm.path.description))
        }
        realms.removeAll { !isPermitted.contains($0.path) }
        let names = Set(permitted.map(\.description))
        for path in cursors.keys.sorted() where !names.contains(path) {
            pending.append(Lines.closed(path))
            cursors[path] = nil
        }
        for index in realms.indices { goOn(index, page.counter) }
        try await openMissing(permitted, page.counter)
        // Also with none open: there may be some later.
        return realms.map(\.number) != joined || isNarrow && isLive && !isFollowed
    }

    private func openMissing(_ permitted: [RealmPath], _ counter: EnvironmentCounter) async throws {
        let open = Set(realms.map(\.path))
        let missing = permitted.filter { !open.contains($0) }
        absent = []
        if missing.isEmpty { return }
        // What a person may open is there, or is bounded by what others wrote; an integration may name anything.
        let isPerson = access.caller.object != nil
        let made = missing.filter { isPerson || [RealmPath.users, .common, .manager].contains($0) }
        let (environment, numbers) = (environment, services.numbers)
        let found = try await services.pool.run { connection in
            let found = try numbers.numbers(of: made, in: environment, create: true, on: &connection)
            return found.merging(
                try numbers.numbers(of: missing, in: environment, create: false, on: &connection)
            ) { old, _ in old }
        }
        for path in missing {
            let cursor = cursors.removeValue(forKey: path.description)
            guard let number = found[path] else {
                absent.insert(path)
                if cursor != nil { pending.append(Lines.closed(path.description)) }
                continue
            }
            let progress = Progress(cursor ?? nil, counter, catchUpCountMax: services.limits.catchUpCountMax)
            pending.append(Lines.open(path, isReset: progress == nil))
            realms.append(OpenRealm(path: path, number: number, progress: progress ?? .fresh(counter)))
        }
    }

    private func goOn(_ index: Int, _ counter: EnvironmentCounter) {
        if !realms[index].progress.isGood(for: counter) {
            pending.append(Lines.open(realms[index].path, isReset: true))
            realms[index].progress = .fresh(counter)
        } else if case .whole(let position) = realms[index].progress {
            realms[index].progress = Progress(
                from: position, counter, catchUpCountMax: services.limits.catchUpCountMax)
        }
    }

    /// Reads the next page of a realm.
    private func download(_ index: Int) async throws {
        let realm = realms[index]
        guard let begun = realm.progress.download else { return }
        let page = try await readPage(realm, begun, count: pageCount)
        guard page.counter.generation == generation else { throw Ended() }
        realms[index].progress = .download(page.next)
        pageCount = page.isLast ? Self.firstPageCount : page.countNext
        guard realms[index].progress.isGood(for: page.counter) else { return goOn(index, page.counter) }
        guard page.isPermitted else {
            // Half a realm is none: should it be permitted again, it begins anew.
            pending.append(Lines.closed(realm.path.description))
            realms.remove(at: index)
            pageCount = Self.firstPageCount
            return
        }
        pending += page.lines
        if page.isLast { realms[index].progress = .whole(page.next.start) }
    }

    private func readPage(_ realm: OpenRealm, _ download: Progress.Download, count: Int) async throws -> DownloadPage {
        let (environment, access) = (environment, access)
        let (generation, countMax) = (generation, services.limits.pageCountMax)
        return try await services.pool.run { connection in
            try DownloadPage.read(
                realm, download, in: environment, generation: generation, count: count, countMax: countMax,
                access: access, on: &connection)
        }
    }

    // MARK: Live

    /// What the device is told of what the environment's reader delivers, until the token expires or the server stops.
    func answer(to disposition: SendBuffer.Disposition) -> Answer {
        var isBehind = false
        switch disposition {
        case .closed: return .end
        case .lagging: isBehind = true
        case .quiet(let position):
            let left = expires - Timestamp.now().secondsSinceEpoch
            guard left > 0 else { return .end }
            checkpoint = max(position, checkpoint)
            moveOn(to: checkpoint)
            pending.append(Lines.keepalive(expiresIn: left, cursor(at: checkpoint), realms: paths))
        case .deliveries(let deliveries): isBehind = !take(deliveries)
        }
        if !absent.isEmpty, ContinuousClock.now - lookedAt >= services.limits.keepaliveMax {
            lookedAt = .now
            isBehind = true
        }
        return .write(taken(), isBehind: isBehind)
    }

    /// - Returns: Whether they could be handed on.
    private func take(_ deliveries: [Delivery]) -> Bool {
        // Nothing is handed on before it is known to be still permitted: a snapshot tells.
        let own = access.own
        let isTouched = deliveries.contains { delivery in
            delivery.touchesPosition > checkpoint
                && delivery.chunks.contains { chunk in
                    chunk.touches.contains { state.isTouched(by: $0, in: chunk.realm, own: own) }
                }
        }
        if isTouched { return false }
        var whole: Int64?
        for delivery in deliveries where delivery.position > checkpoint {
            for chunk in delivery.chunks where joined.contains(chunk.realm) {
                if let line = chunk.line(above: checkpoint) { pending.append(line) }
            }
            if delivery.isWhole { whole = delivery.position }
        }
        // What was sent comes again from the change log only if it has changed since: the realms are moved on first.
        if let reached = deliveries.last?.position { moveOn(to: max(reached, checkpoint)) }
        if let whole { add(checkpoint: whole) }
        return true
    }

    private func moveOn(to position: Int64) {
        for index in realms.indices { realms[index].progress = .whole(position) }
        feed?.state.moveOn(to: position)
    }

    private var paths: [RealmPath]? { feed == nil ? realms.map(\.path) : nil }

    private func cursor(at position: Int64) -> Cursor {
        Cursor(generation: generation, start: position, position: position, kinds: feed?.state.digest)
    }

    private func add(checkpoint position: Int64) {
        checkpoint = position
        pending.append(Lines.checkpoint(cursor(at: position), realms: paths))
    }

    private func taken() -> [ByteBuffer] {
        defer { pending = [] }
        return pending
    }
}

import Access
import Essentials
import Model
import NIOCore
import ObjectStore
import Postgres

/// The dependencies that all sessions share; a session has one reference to them.
final class SyncServices: Sendable {
    let pool: Pool
    let numbers: RealmNumbers
    let hub: LiveHub
    let kinds: KindDirectory
    let limits: GatewayLimits

    init(pool: Pool, numbers: RealmNumbers, hub: LiveHub, kinds: KindDirectory, limits: GatewayLimits) {
        self.kinds = kinds
        self.pool = pool
        self.numbers = numbers
        self.hub = hub
        self.limits = limits
    }
}

/// The sync state of one device: brings the realms that the person may open up to date, and then follows their changes.
///
/// Only ``SyncStream`` calls it, one call at a time, and writes its lines.
actor SyncSession {
    nonisolated let services: SyncServices
    nonisolated let environment: EnvironmentID
    nonisolated let isLive: Bool
    nonisolated let buffer: SendBuffer
    nonisolated let access: AccessReader
    private let expires: Int64
    private let generation: Int64
    /// The realms that the device names; those that it may not open yet are opened once it may.
    private let named: [RealmPath]
    /// Whether only named realms are opened.
    private let opensOnlyNamed: Bool
    /// The permissions in the last snapshot.
    private var state: AccessState
    private var realms: [OpenRealm] = []
    /// The environment's feed of an integration, instead of realms.
    private var feed: FeedStorage?
    /// Whether the session has subscribed to the live reader.
    private var isSubscribed = false
    /// Realms that may be opened once they exist. No event announces that, so they are polled.
    private var absent: Set<RealmPath> = []
    private var absentCheckedAt = ContinuousClock.now
    /// The numbers of the realms that the session follows through the live reader.
    private var subscribed: [Int32] = []
    /// The request's cursors that are not used yet.
    private var cursors: [String: Cursor?]
    /// The last checkpoint: the device has everything up to here; below 0 before the first one.
    private var checkpoint: Int64 = -1
    /// Number of objects in the next page of a download; it grows.
    private var pageCount = firstPageCount
    private static let firstPageCount = 200
    private var lines: SessionLines
    /// The realm of the client's write checkpoint, in the PowerSync protocol.
    private let sent: SentRealm?

    /// A separate allocation, so that the many sessions without a feed do not reserve memory for it.
    private final class FeedStorage {
        var state: EnvironmentFeed
        init(_ state: EnvironmentFeed) { self.state = state }
    }

    /// Reads the environment's counter and the caller's permissions, so that an unavailable database or a revoked key
    /// is reported as an HTTP status. After a restore, a client of the PowerSync protocol gets a new number.
    init(_ services: SyncServices, _ login: Login, request: SyncRequest, buffer: SendBuffer) async throws {
        let (caller, numbers) = (login.caller, services.numbers)
        let named = request.named
        self.services = services
        self.named = named
        opensOnlyNamed = request.only != nil
        environment = caller.environment
        state = AccessState(caller)
        expires = login.expires
        isLive = request.isLive
        self.buffer = buffer
        let buckets = request.buckets
        let (access, sent, counter, isAssigned) = try await services.pool.run { connection in
            let sent = try SentRealm(of: caller, client: buckets?.clientID, numbers, on: &connection)
            let access = try AccessReader(caller, named: named, numbers, on: &connection)
            let results = try connection.run([EnvironmentCounter.load(caller.environment)] + access.statements)
            guard try !access.state(results[1...]).isRemoved else { throw Problems.keyUnknown }
            let counter = try EnvironmentCounter(try counterRow(results[0]))
            var isAssigned = false
            if let sent, let position = buckets?.position(exceptOf: counter.generation) {
                isAssigned = try sent.assignAgain(after: position, in: caller.environment, on: &connection)
            }
            return (access, sent, counter, isAssigned)
        }
        if isAssigned { services.hub.committed(in: caller.environment) }
        self.access = access
        self.sent = sent
        generation = counter.generation
        lines = SessionLines(request, generation: counter.generation)
        cursors = request.buckets?.cursors(generation: counter.generation) ?? request.cursors
        if let all = request.all {
            let (feed, isReset) = EnvironmentFeed.open(all, services, access, counter)
            self.feed = FeedStorage(feed)
            lines.append([SyncLines.openAll(isReset: isReset)])
        }
    }

    // MARK: Catching up

    /// Reads the next page of missing data. The last page ends with the snapshot's checkpoint.
    func next() async throws -> Step {
        let isDone = try await advance()
        return Step(lines: lines.take(), isDone: isDone)
    }

    /// Reads one page of missing data; returns whether the device is up to date after it.
    private func advance() async throws -> Bool {
        if feed != nil { return try await advanceFeed() }
        if let index = realms.firstIndex(where: { $0.progress.download != nil }) {
            try await download(index)
            return false
        }
        buffer.clear()
        let page = try await readChanges()
        // The live reader delivers changes from this counter on: the last snapshot is taken after the subscription.
        guard try await !open(page) else {
            subscribed = realms.map(\.number)
            if isLive {
                isSubscribed = true
                services.hub.subscribe(buffer, in: environment, realms: realms + watched, from: page.counter)
            }
            return false
        }
        guard page.isRead, realms.allSatisfy({ $0.progress.download == nil }) else { return false }
        lines.append(page.lines)
        for index in realms.indices {
            guard case .changeLog(let held) = realms[index].progress else { continue }
            realms[index].progress = .changeLog(max(held, page.position))
        }
        if page.isFull { return false }
        add(checkpoint: page.counter.position)
        return true
    }

    /// Reads one page of the whole environment.
    private func advanceFeed() async throws -> Bool {
        guard var feed = self.feed?.state else { return true }
        if feed.isDownloaded {
            // Changes after the subscription are in the next snapshot, or cause another notification.
            if isLive, !isSubscribed {
                isSubscribed = true
                services.hub.subscribe(buffer, in: environment, kinds: feed.kinds, from: feed.counter)
            }
            buffer.clear()
        }
        let step = try await feed.advance()
        self.feed?.state = feed
        lines.append(step.lines)
        // Without a newer position, the notification was about changes that the previous snapshot had.
        if let position = step.checkpoint, position > checkpoint { add(checkpoint: position) }
        return step.checkpoint != nil
    }

    private func readChanges() async throws -> ChangePage {
        let (realms, access, environment, limits) = (realms, access, environment, services.limits)
        let (sent, format) = (sent, lines.format)
        let names = services.kinds.names
        let page = try await services.pool.run { connection in
            try ChangePage.read(
                realms, access: access, sent: sent, format: format, in: environment, limits: limits, names: names,
                on: &connection)
        }
        guard page.counter.generation == generation, !page.access.isRemoved else { throw StreamEnd() }
        lines.setWriteCheckpoint(page.writeCheckpoint)
        return page
    }

    /// Realms that define permissions and are not open, because the device did not name them. Their permission changes
    /// are evaluated, and their objects are not sent.
    private var watched: [OpenRealm] {
        guard let own = access.caller.own else { return [] }
        var numbers = opensOnlyNamed ? [own: access.own, .common: access.common] : [:]
        if let sent { numbers[sent.path] = sent.number }
        return numbers.filter { !subscribed.contains($0.value) }.map {
            OpenRealm(path: $0.key, number: $0.value, progress: .changeLog(0))
        }
    }

    /// Opens and closes realms by the snapshot's permissions, and starts downloads where the change log does not
    /// suffice.
    ///
    /// - Returns: Whether the open realms differ from the subscription.
    private func open(_ page: ChangePage) async throws -> Bool {
        state = page.access
        let permitted = state.opened(named: named, isNarrow: opensOnlyNamed)
        let isPermitted = Set(permitted)
        for realm in realms where !isPermitted.contains(realm.path) { lines.close(realm.path) }
        realms.removeAll { !isPermitted.contains($0.path) }
        let names = Set(permitted.map(\.description))
        for path in cursors.keys.sorted() where !names.contains(path) {
            lines.close(path)
            cursors[path] = nil
        }
        for index in realms.indices { resume(index, page.counter) }
        try await openMissing(permitted, page.counter)
        lines.announce(at: page.counter.position, defaults: state.opened(named: [], isNarrow: false))
        // Also without open realms: some may be opened later.
        return realms.map(\.number) != subscribed || opensOnlyNamed && isLive && !isSubscribed
    }

    private func openMissing(_ permitted: [RealmPath], _ counter: EnvironmentCounter) async throws {
        let open = Set(realms.map(\.path))
        let missing = permitted.filter { !open.contains($0) }
        absent = []
        if missing.isEmpty { return }
        // A person's realms exist, or their number is limited by stored objects; an integration may name any path.
        let isPerson = access.caller.object != nil
        let creatable = missing.filter { isPerson || [RealmPath.users, .common, .manager].contains($0) }
        let (environment, numbers) = (environment, services.numbers)
        let ids = try await services.pool.run { connection in
            let ids = try numbers.numbers(of: creatable, in: environment, create: true, on: &connection)
            return ids.merging(
                try numbers.numbers(of: missing, in: environment, create: false, on: &connection)
            ) { old, _ in old }
        }
        for path in missing {
            let cursor = cursors.removeValue(forKey: path.description)
            guard let number = ids[path] else {
                absent.insert(path)
                if cursor != nil { lines.close(path) }
                continue
            }
            let progress = SyncProgress(cursor ?? nil, counter, catchUpCountMax: services.limits.catchUpCountMax)
            lines.open(path, isReset: progress == nil)
            realms.append(OpenRealm(path: path, number: number, progress: progress ?? .fresh(counter)))
        }
    }

    private func resume(_ index: Int, _ counter: EnvironmentCounter) {
        if !realms[index].progress.isValid(for: counter) {
            lines.open(realms[index].path, isReset: true)
            realms[index].progress = .fresh(counter)
        } else if case .changeLog(let position) = realms[index].progress {
            realms[index].progress = SyncProgress(
                from: position, counter, catchUpCountMax: services.limits.catchUpCountMax)
        }
    }

    /// Reads the next page of a realm.
    private func download(_ index: Int) async throws {
        let realm = realms[index]
        guard let download = realm.progress.download else { return }
        let (environment, access, count) = (environment, access, pageCount)
        let (generation, format, countMax) = (generation, lines.format, services.limits.pageCountMax)
        let names = services.kinds.names
        let page = try await services.pool.run { connection in
            try DownloadPage.read(
                realm, download, in: environment, generation: generation, format: format, count: count,
                countMax: countMax, access: access, names: names, on: &connection)
        }
        guard page.counter.generation == generation else { throw StreamEnd() }
        realms[index].progress = .download(page.next)
        pageCount = page.isLast ? Self.firstPageCount : page.countNext
        guard realms[index].progress.isValid(for: page.counter) else { return resume(index, page.counter) }
        guard page.isPermitted else {
            // The partial realm is discarded: if it is permitted again, its download restarts.
            lines.close(realm.path)
            realms.remove(at: index)
            pageCount = Self.firstPageCount
            return
        }
        lines.append(page.lines)
        if page.isLast { realms[index].progress = .changeLog(page.next.start) }
    }

    // MARK: Live

    /// Returns the output for an event of the send buffer; `.end` if the token has expired or the server stops.
    func output(for event: SendBuffer.Event) -> Output {
        var isBehind = false
        switch event {
        case .closed: return .end
        case .lagging: isBehind = true
        case .idle(let position):
            let remaining = expires - Timestamp.now().secondsSinceEpoch
            guard remaining > 0 else { return .end }
            checkpoint = max(position, checkpoint)
            advance(to: checkpoint)
            lines.keepalive(expiresIn: remaining, cursor(at: checkpoint), realms: paths)
        case .deliveries(let deliveries):
            isBehind = !take(deliveries)
            lines.announceExpiry(in: expires - Timestamp.now().secondsSinceEpoch)
        }
        if !absent.isEmpty, ContinuousClock.now - absentCheckedAt >= services.limits.keepaliveMax {
            absentCheckedAt = .now
            isBehind = true
        }
        return .write(lines.take(), isBehind: isBehind)
    }

    /// - Returns: Whether they could be sent; `false` if a snapshot is needed.
    private func take(_ deliveries: [LiveDelivery]) -> Bool {
        // A permission change requires a new snapshot before anything is sent.
        let own = access.own
        let isAffected = deliveries.contains { delivery in
            delivery.permissionsPosition > checkpoint
                && delivery.chunks.contains { chunk in
                    chunk.permissionChanges.contains { state.isAffected(by: $0, in: chunk.realm, own: own) }
                }
        }
        if isAffected { return false }
        // Changes after the last consistent state follow its checkpoint: they may be a part of a transaction.
        let count = deliveries.lastIndex { $0.isConsistent && $0.position > checkpoint }.map { $0 + 1 } ?? 0
        append(deliveries[..<count])
        if count > 0 { add(checkpoint: deliveries[count - 1].position) }
        append(deliveries[count...])
        return true
    }

    private func append(_ deliveries: ArraySlice<LiveDelivery>) {
        for delivery in deliveries where delivery.position > checkpoint {
            for chunk in delivery.chunks where subscribed.contains(chunk.realm) {
                if let line = chunk.line(above: checkpoint, lines.format) { lines.append([line]) }
            }
            guard let sent else { continue }
            for chunk in delivery.chunks where chunk.realm == sent.number {
                lines.setWriteCheckpoint(chunk.writeCheckpoints[sent.client])
            }
        }
        // Sent objects are read again only if they have changed since.
        if let reached = deliveries.last?.position { advance(to: max(reached, checkpoint)) }
    }

    private func advance(to position: Int64) {
        for index in realms.indices { realms[index].progress = .changeLog(position) }
        feed?.state.advance(to: position)
    }

    private var paths: [RealmPath]? { feed == nil ? realms.map(\.path) : nil }

    private func cursor(at position: Int64) -> Cursor {
        Cursor(generation: generation, start: position, position: position, kinds: feed?.state.digest)
    }

    private func add(checkpoint position: Int64) {
        checkpoint = position
        lines.checkpoint(cursor(at: position), realms: paths)
    }
}

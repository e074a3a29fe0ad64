import Essentials
import Logging
import Model
import ObjectStore
import Postgres
import Synchronization

/// Follows one environment's change log while devices are live: each change is read once, encoded once, and delivered
/// to the devices that follow its realm. `LiveHub` wakes it when there are changes.
final class LiveReader: Sendable {
    private struct Realm {
        let path: RealmPath
        var buffers: [ObjectIdentifier: SendBuffer] = [:]
    }

    private struct State {
        var realms: [Int32: Realm] = [:]
        var subscriptions: [ObjectIdentifier: [Int32]] = [:]
        /// Sessions that follow all realms and read the log themselves, with the kinds that they are notified of.
        var followers: [ObjectIdentifier: (buffer: SendBuffer, kinds: KindSelection)] = [:]
        /// Everything up to here was delivered; `nil` if no device is live.
        var position: Int64?
        /// The generation of that position.
        var generation: Int64 = 0
        /// The last delivered position that is the end of a transaction.
        var consistentPosition: Int64 = 0
        /// All permission changes up to here were delivered.
        var permissionsPosition: Int64 = 0
        var isReading = false
        /// Whether a wake-up arrived during the current read.
        var isDue = false
        var lastChange = ContinuousClock.now
        /// The time of the last read, also of changes that concern no device.
        var lastRead = ContinuousClock.now
    }

    private let environment: EnvironmentID
    private let pool: Pool
    private let limits: GatewayLimits
    private let names: KindNames
    private let logger: Logger
    private let wakeup: Wakeup
    private let state = Mutex(State())

    /// - Parameter wakeup: Signalled when a device is the first to subscribe, and when a read ends.
    init(
        environment: EnvironmentID, pool: Pool, limits: GatewayLimits, names: KindNames, logger: Logger, wakeup: Wakeup
    ) {
        self.wakeup = wakeup
        self.names = names
        self.environment = environment
        self.pool = pool
        self.limits = limits
        self.logger = logger
    }

    /// Everything up to here was delivered; it is the end of a transaction.
    var consistentPosition: Int64 { state.withLock { $0.consistentPosition } }

    /// The reader's position, to compare with the counter; `nil` while no device is live or a read is running.
    var idlePosition: ReaderPosition? {
        state.withLock { state in
            guard let position = state.position, !state.isReading, !state.subscriptions.isEmpty else { return nil }
            return ReaderPosition(environment: environment, generation: state.generation, position: position)
        }
    }

    func isActive(now: ContinuousClock.Instant) -> Bool {
        state.withLock { !$0.subscriptions.isEmpty && now - $0.lastChange < AwaitedPositions.activityWindow }
    }

    /// Whether the environment had no change for a while, or no device is live.
    func isQuiet(now: ContinuousClock.Instant) -> Bool {
        state.withLock { $0.subscriptions.isEmpty || now - $0.lastRead >= AwaitedPositions.activityWindow }
    }

    /// Reads the new changes, page by page, unless a read is running.
    func wake() {
        let isFirst = state.withLock { state in
            guard !state.subscriptions.isEmpty else { return false }
            state.isDue = state.isReading
            defer { state.isReading = true }
            return !state.isReading
        }
        if isFirst { Task { await run() } }
    }

    /// Subscribes a device to the changes in these realms, instead of those it followed before.
    ///
    /// - Parameters:
    ///   - kinds: If objects of these kinds change, in any realm, the session is notified to read the log itself.
    ///   - counter: The counter that the device has read: the start of reading if no device was live.
    func subscribe(
        _ buffer: SendBuffer, realms: [OpenRealm] = [], kinds: KindSelection? = nil, from counter: EnvironmentCounter
    ) {
        state.withLock { state in
            Self.remove(buffer, &state)
            if state.subscriptions.isEmpty {
                (state.lastChange, state.lastRead) = (.now, .now)
                wakeup.signal()
            }
            for realm in realms {
                state.realms[realm.number, default: Realm(path: realm.path)].buffers[ObjectIdentifier(buffer)] = buffer
            }
            state.subscriptions[ObjectIdentifier(buffer)] = realms.map(\.number)
            if let kinds {
                state.followers[ObjectIdentifier(buffer)] = (buffer, kinds)
            }
            if state.position == nil {
                (state.position, state.consistentPosition) = (counter.position, counter.position)
                state.generation = counter.generation
            }
        }
    }

    func unsubscribe(_ buffer: SendBuffer) {
        state.withLock { state in
            Self.remove(buffer, &state)
            if state.subscriptions.isEmpty, !state.isReading { state.position = nil }
        }
    }

    private static func remove(_ buffer: SendBuffer, _ state: inout State) {
        state.followers[ObjectIdentifier(buffer)] = nil
        for realm in state.subscriptions.removeValue(forKey: ObjectIdentifier(buffer)) ?? [] {
            state.realms[realm]?.buffers[ObjectIdentifier(buffer)] = nil
            if state.realms[realm]?.buffers.isEmpty == true { state.realms[realm] = nil }
        }
    }

    // MARK: Reading

    private func run() async {
        defer { wakeup.signal() }
        var backoff = Backoff(first: .milliseconds(50), waitMax: .seconds(2))
        /// Devices that got a part of a longer read, and must get its end.
        var unfinished: [ObjectIdentifier: SendBuffer] = [:]
        while let position = nextPosition() {
            do {
                let page = try await read(after: position)
                backoff.succeeded()
                if check(page, after: position) { deliver(page, &unfinished) }
                if !continues(after: page) { return }
            } catch {
                logger.warning("reading changes failed", metadata: ["error": "\(error)"])
                try? await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
            }
        }
    }

    /// Returns the position to read from; `nil` stops the reader because no device is live.
    private func nextPosition() -> Int64? {
        state.withLock { state in
            if !state.subscriptions.isEmpty { return state.position }
            // The next subscriber sets the start position.
            state.position = nil
            state.isReading = false
            return nil
        }
    }

    /// Returns whether there may be more to read; otherwise the read ends.
    private func continues(after page: LivePage) -> Bool {
        state.withLock { state in
            state.lastRead = .now
            let concernsFollowers = state.followers.values.contains { $0.kinds.concerns(page.kinds) }
            if concernsFollowers || !page.chunks.isEmpty { state.lastChange = .now }
            let isMoreDue = page.isFull || state.isDue
            state.isDue = false
            state.isReading = isMoreDue
            return isMoreDue
        }
    }

    private func read(after position: Int64) async throws -> LivePage {
        let (environment, countMax) = (environment, limits.changeCountMax)
        let scanned = state.withLock { $0.permissionsPosition }
        return try await pool.run { [self] connection in
            try LivePage.read(
                in: environment, after: position, scannedTo: scanned, countMax: countMax,
                names: names, path: { realm in self.state.withLock { $0.realms[realm]?.path } }, on: &connection)
        }
    }

    /// Returns whether the page continues the position. After a restore or a compaction beyond the position, the
    /// sessions catch up from the database themselves.
    private func check(_ page: LivePage, after position: Int64) -> Bool {
        let (isSame, buffers): (Bool, [SendBuffer]) = state.withLock { state in
            let isSame =
                state.generation == page.counter.generation
                && position >= page.counter.compactedPosition && position <= page.counter.position
                && !page.exceedsLimit
            state.generation = page.counter.generation
            guard !isSame else { return (true, []) }
            (state.position, state.consistentPosition) = (page.counter.position, page.counter.position)
            state.permissionsPosition = 0
            return (false, state.realms.values.flatMap(\.buffers.values) + state.followers.values.map(\.buffer))
        }
        for buffer in buffers { buffer.markLagging() }
        return isSame
    }

    private func deliver(_ page: LivePage, _ unfinished: inout [ObjectIdentifier: SendBuffer]) {
        var chunks: [ObjectIdentifier: [LiveChunk]] = [:]
        var buffers = unfinished
        for chunk in page.chunks {
            guard let subscribers = state.withLock({ $0.realms[chunk.realm]?.buffers }) else { continue }
            for (id, buffer) in subscribers {
                chunks[id, default: []].append(chunk)
                buffers[id] = buffer
            }
        }
        for (id, buffer) in buffers {
            buffer.push(
                LiveDelivery(
                    position: page.position, permissionsPosition: page.permissionsPosition, chunks: chunks[id] ?? [],
                    isConsistent: !page.isFull))
        }
        unfinished = page.isFull ? buffers : [:]
        let followers = state.withLock { Array($0.followers.values) }
        for follower in followers where follower.kinds.concerns(page.kinds) { follower.buffer.markLagging() }
        state.withLock { state in
            state.position = page.position
            state.permissionsPosition = max(state.permissionsPosition, page.permissionsPosition)
            if !page.isFull { state.consistentPosition = page.position }
        }
    }
}

/// The position of an environment's reader.
struct ReaderPosition: Sendable {
    let environment: EnvironmentID
    let generation: Int64
    let position: Int64

    /// Returns the environments whose counters differ, in one query for any number of readers. Rows: id.
    static func changed(_ positions: [ReaderPosition]) -> Statement {
        """
        SELECT k.id
        FROM unnest(\(positions.map(\.environment.rawValue)), \(positions.map(\.generation)),
            \(positions.map(\.position)))
            AS k(id, generation, position)
        CROSS JOIN LATERAL (
            SELECT e.generation, e.position FROM realm.environment e WHERE e.id = k.id OFFSET 0
        ) e
        WHERE e.position <> k.position OR e.generation <> k.generation
        """
    }
}

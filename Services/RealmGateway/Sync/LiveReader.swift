import Essentials
import Logging
import Model
import ObjectStore
import Postgres
import ServiceRuntime
import Synchronization

/// Follows one environment's change log while devices are live: each change is read once, encoded once, and handed to
/// the devices that have its realm open. It reads when it is told that there is something new; see `LiveHub`.
final class LiveReader: Sendable {
    private struct Realm {
        let path: RealmPath
        var outboxes: [ObjectIdentifier: SendBuffer] = [:]
    }

    private struct State {
        var realms: [Int32: Realm] = [:]
        var memberships: [ObjectIdentifier: [Int32]] = [:]
        /// Those that follow all realms, and what they want to hear of: they read it by themselves.
        var followers: [ObjectIdentifier: (outbox: SendBuffer, kinds: Set<Kind>)] = [:]
        /// Everything up to here was pushed; `nil`: nobody is live.
        var position: Int64?
        /// That position is of this one.
        var generation: Int64 = 0
        /// The same, where no transaction was cut.
        var wholePosition: Int64 = 0
        /// Up to here devices were told of what permissions are made of.
        var touchesPosition: Int64 = 0
        var isReading = false
        /// There may be more than what is being read.
        var isDue = false
        var lastChange = ContinuousClock.now
    }

    /// How long after a change more are likely to come.
    private static let livelyFor = Duration.seconds(3)

    private let environment: EnvironmentID
    private let pool: Pool
    private let limits: GatewayLimits
    private let logger: Logger
    private let state = Mutex(State())

    init(environment: EnvironmentID, pool: Pool, limits: GatewayLimits, logger: Logger) {
        self.environment = environment
        self.pool = pool
        self.limits = limits
        self.logger = logger
    }

    /// Everything up to here was pushed, and no transaction cut.
    var wholePosition: Int64 { state.withLock { $0.wholePosition } }

    /// Where it is, to be compared with the counter; `nil` while nobody is live, or it reads.
    var place: LivePlace? {
        state.withLock { state in
            guard let position = state.position, !state.isReading, !state.memberships.isEmpty else { return nil }
            return LivePlace(environment: environment, generation: state.generation, position: position)
        }
    }

    func isLively(now: ContinuousClock.Instant) -> Bool {
        state.withLock { !$0.memberships.isEmpty && now - $0.lastChange < Self.livelyFor }
    }

    /// There may be something new: it is read, one page after the other.
    func hurry() {
        let isFirst = state.withLock { state in
            guard !state.memberships.isEmpty else { return false }
            state.isDue = state.isReading
            defer { state.isReading = true }
            return !state.isReading
        }
        if isFirst { Task { await run() } }
    }

    /// Hands the device what changes in these realms from now on, instead of those it had before.
    ///
    /// - Parameters:
    ///   - kinds: When something of them changes, in whatever realm, the session is told to read the log by itself.
    ///   - counter: As the device has seen it: where reading begins when nobody was live.
    func join(_ outbox: SendBuffer, realms: [OpenRealm] = [], kinds: [Kind] = [], from counter: EnvironmentCounter) {
        state.withLock { state in
            Self.remove(outbox, &state)
            if state.memberships.isEmpty { state.lastChange = .now }
            for realm in realms {
                state.realms[realm.number, default: Realm(path: realm.path)].outboxes[ObjectIdentifier(outbox)] = outbox
            }
            state.memberships[ObjectIdentifier(outbox)] = realms.map(\.number)
            if !kinds.isEmpty {
                state.followers[ObjectIdentifier(outbox)] = (outbox, Set(kinds))
            }
            if state.position == nil {
                (state.position, state.wholePosition) = (counter.position, counter.position)
                state.generation = counter.generation
            }
        }
    }

    func leave(_ outbox: SendBuffer) {
        state.withLock { state in
            Self.remove(outbox, &state)
            if state.memberships.isEmpty, !state.isReading { state.position = nil }
        }
    }

    private static func remove(_ outbox: SendBuffer, _ state: inout State) {
        state.followers[ObjectIdentifier(outbox)] = nil
        for realm in state.memberships.removeValue(forKey: ObjectIdentifier(outbox)) ?? [] {
            state.realms[realm]?.outboxes[ObjectIdentifier(outbox)] = nil
            if state.realms[realm]?.outboxes.isEmpty == true { state.realms[realm] = nil }
        }
    }

    // MARK: Reading

    private func run() async {
        var backoff = Backoff(first: .milliseconds(50), waitMax: .seconds(2))
        /// Devices that got part of a longer read, and are owed its end.
        var unfinished: [ObjectIdentifier: SendBuffer] = [:]
        while let position = positionOrStop() {
            do {
                let page = try await read(after: position)
                backoff.succeeded()
                if check(page, after: position) { deliver(page, &unfinished) }
                if !goesOn(after: page) { return }
            } catch {
                logger.warning("cannot read changes", metadata: ["error": "\(error)"])
                try? await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
            }
        }
    }

    private func positionOrStop() -> Int64? {
        state.withLock { state in
            if !state.memberships.isEmpty { return state.position }
            // Whoever comes next says where to begin.
            state.position = nil
            state.isReading = false
            return nil
        }
    }

    /// Whether there is more to read; else the reading is over.
    private func goesOn(after page: LivePage) -> Bool {
        state.withLock { state in
            let isHeard = state.followers.values.contains { !$0.kinds.isDisjoint(with: page.kinds) }
            if isHeard || !page.chunks.isEmpty { state.lastChange = .now }
            let goesOn = page.isFull || state.isDue
            state.isDue = false
            state.isReading = goesOn
            return goesOn
        }
    }

    private func read(after position: Int64) async throws -> LivePage {
        let (environment, countMax) = (environment, limits.changeCountMax)
        let known = state.withLock { $0.touchesPosition }
        return try await pool.run { [self] connection in
            try LivePage.read(
                in: environment, after: position, touchesKnownTo: known, countMax: countMax,
                path: { realm in self.state.withLock { $0.realms[realm]?.path } }, on: &connection)
        }
    }

    /// A restored database or a floor above the reader: the devices find out for themselves where they stand.
    private func check(_ page: LivePage, after position: Int64) -> Bool {
        let (isSame, outboxes): (Bool, [SendBuffer]) = state.withLock { state in
            let isSame =
                state.generation == page.counter.generation
                && position >= page.counter.compactedPosition && position <= page.counter.position
                && !page.isOverfull
            state.generation = page.counter.generation
            guard !isSame else { return (true, []) }
            (state.position, state.wholePosition) = (page.counter.position, page.counter.position)
            state.touchesPosition = 0
            return (false, state.realms.values.flatMap(\.outboxes.values) + state.followers.values.map(\.outbox))
        }
        for outbox in outboxes { outbox.lag() }
        return isSame
    }

    private func deliver(_ page: LivePage, _ unfinished: inout [ObjectIdentifier: SendBuffer]) {
        var chunks: [ObjectIdentifier: [LiveChunk]] = [:]
        var outboxes = unfinished
        for chunk in page.chunks {
            guard let subscribed = state.withLock({ $0.realms[chunk.realm]?.outboxes }) else { continue }
            for (id, outbox) in subscribed {
                chunks[id, default: []].append(chunk)
                outboxes[id] = outbox
            }
        }
        for (id, outbox) in outboxes {
            outbox.push(
                Delivery(
                    position: page.position, touchesPosition: page.touchesPosition, chunks: chunks[id] ?? [],
                    isWhole: !page.isFull))
        }
        unfinished = page.isFull ? outboxes : [:]
        let followers = state.withLock { Array($0.followers.values) }
        for follower in followers where !follower.kinds.isDisjoint(with: page.kinds) { follower.outbox.lag() }
        state.withLock { state in
            state.position = page.position
            state.touchesPosition = max(state.touchesPosition, page.touchesPosition)
            if !page.isFull { state.wholePosition = page.position }
        }
    }
}

/// Where a reader of an environment is.
struct LivePlace: Sendable {
    let environment: EnvironmentID
    let generation: Int64
    let position: Int64

    /// The environments whose counters are elsewhere: found by one question, whatever their number. Rows: id.
    static func news(_ places: [LivePlace]) -> Statement {
        """
        SELECT k.id
        FROM unnest(\(places.map(\.environment.rawValue)), \(places.map(\.generation)), \(places.map(\.position)))
            AS k(id, generation, position)
        CROSS JOIN LATERAL (
            SELECT e.generation, e.position FROM realm.environment e WHERE e.id = k.id OFFSET 0
        ) e
        WHERE e.position <> k.position OR e.generation <> k.generation
        """
    }
}

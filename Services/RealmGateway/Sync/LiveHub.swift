import Access
import Essentials
import Logging
import Metrics
import Model
import ObjectStore
import Postgres
import ServiceLifecycle
import ServiceRuntime
import Synchronization

/// The live devices of this gateway, and one reader for each of their environments.
///
/// One question tells which environments have something new, of those that had changes lately as often as of all
/// together now and then; it has a connection of its own. Then their readers share a few connections, each with one
/// page at a time: neither many environments nor a slow one hold the others up.
final class LiveHub: Service, Sendable {
    private struct State {
        var readers: [EnvironmentID: LiveReader] = [:]
        var outboxes: [ObjectIdentifier: (outbox: SendBuffer, caller: Caller, reader: LiveReader?)] = [:]
        var isClosed = false
    }

    private static let tickInterval = Duration.milliseconds(250)
    /// At a shutdown a device that takes nothing for longer is cut off, so that it holds nobody up.
    private static let lastWriteMax = Duration.seconds(2)

    private let pool: Pool
    private let watchPool: Pool
    private let limits: GatewayLimits
    private let logger: Logger
    private let state = Mutex(State())
    private let devices = Gauge(label: "fieldpost.live.devices")

    /// - Parameters:
    ///   - pool: Connections of the readers' own, so that no download is before a change.
    ///   - watchPool: One connection that tells what is new.
    init(pool: Pool, watchPool: Pool, limits: GatewayLimits, logger: Logger) {
        self.pool = pool
        self.watchPool = watchPool
        self.limits = limits
        self.logger = logger
    }

    /// How many streams are open.
    var count: Int { state.withLock { $0.outboxes.count } }

    /// Looks after a session's connection from now on.
    func watch(_ outbox: SendBuffer, of caller: Caller) {
        let isClosed = state.withLock { state in
            state.outboxes[ObjectIdentifier(outbox)] = (outbox, caller, nil)
            return state.isClosed
        }
        if isClosed { outbox.close() }
    }

    /// Has a session told of what changes; see ``LiveReader``.
    func join(
        _ outbox: SendBuffer, in environment: EnvironmentID, realms: [OpenRealm] = [], kinds: [Kind] = [],
        from counter: EnvironmentCounter
    ) {
        let reader: LiveReader? = state.withLock { state in
            // Its session may have ended while its next page was still being read.
            guard state.outboxes[ObjectIdentifier(outbox)] != nil else { return nil }
            let reader =
                state.readers[environment]
                ?? LiveReader(environment: environment, pool: pool, limits: limits, logger: logger)
            state.readers[environment] = reader
            state.outboxes[ObjectIdentifier(outbox)]?.reader = reader
            return reader
        }
        reader?.join(outbox, realms: realms, kinds: kinds, from: counter)
    }

    func leave(_ outbox: SendBuffer, in environment: EnvironmentID) {
        let reader = state.withLock { state in
            state.outboxes.removeValue(forKey: ObjectIdentifier(outbox))?.reader
        }
        reader?.leave(outbox)
    }

    /// Something was committed: no need to wait for the next look.
    func committed(in environment: EnvironmentID) { state.withLock { $0.readers[environment] }?.hurry() }

    /// Ends the streams of callers that may not come in any more.
    func close(where isGone: (Caller) -> Bool) {
        let gone = state.withLock { state in state.outboxes.values.filter { isGone($0.caller) }.map(\.outbox) }
        for outbox in gone { outbox.close() }
    }

    /// One ticker for all sessions; at a shutdown it ends them, so that the server can stop.
    func run() async throws {
        await cancelWhenGracefulShutdown {
            async let watching: Void = self.watch()
            while !Task.isCancelled {
                try? await Task.sleep(for: Self.tickInterval)
                self.tick(lagMax: self.limits.lagMax)
                self.devices.record(self.count)
            }
            await watching
        }
        let outboxes = state.withLock { state in
            state.isClosed = true
            return state.outboxes.values.map(\.outbox)
        }
        for outbox in outboxes { outbox.close() }
        while count > 0, !Task.isCancelled {
            try? await Task.sleep(for: Self.tickInterval)
            tick(lagMax: min(limits.lagMax, Self.lastWriteMax))
        }
    }

    /// Has the readers read whose environments have something new.
    private func watch() async {
        var backoff = Backoff(first: .milliseconds(50), waitMax: .seconds(2))
        var nextOfAll = ContinuousClock.now
        var lively: [LiveReader] = []
        while !Task.isCancelled {
            let now = ContinuousClock.now
            var asked = lively
            if now >= nextOfAll {
                nextOfAll = now + limits.liveIdleInterval
                asked = state.withLock { Array($0.readers.values) }
                lively = asked.filter { $0.isLively(now: now) }
            }
            do {
                try await hurry(asked)
                backoff.succeeded()
                try? await Task.sleep(for: lively.isEmpty ? limits.liveIdleInterval : limits.liveInterval)
            } catch {
                logger.warning("cannot look for changes", metadata: ["error": "\(error)"])
                try? await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
            }
        }
    }

    private func hurry(_ readers: [LiveReader]) async throws {
        let places = readers.compactMap(\.place)
        if places.isEmpty { return }
        let environments = try await watchPool.run { connection in
            try connection.run(LivePlace.news(places)).decode(EnvironmentID.self)
        }
        for environment in environments { committed(in: environment) }
    }

    private func tick(lagMax: Duration) {
        let now = SteadyClock.nanoseconds()
        let (outboxes, readers) = state.withLock { (Array($0.outboxes.values), Array($0.readers.values)) }
        let positions = Dictionary(uniqueKeysWithValues: readers.map { (ObjectIdentifier($0), $0.wholePosition) })
        for (outbox, _, reader) in outboxes {
            let position = reader.flatMap { positions[ObjectIdentifier($0)] } ?? 0
            outbox.tick(now: now, position: position, lagMax: lagMax)
        }
    }
}

import Access
import Essentials
import Logging
import Metrics
import Model
import ObjectStore
import Postgres
import ServiceLifecycle
import Synchronization

/// The live devices of this gateway, and one change-log reader per environment.
///
/// One query, on its own connection, finds the environments with new changes. Environments with recent changes are
/// polled more often than the others. Their readers share a few connections, with one page per request: neither many
/// environments nor a slow one block the others.
final class LiveHub: Service, Sendable {
    private struct State {
        var readers: [EnvironmentID: LiveReader] = [:]
        var buffers: [ObjectIdentifier: (buffer: SendBuffer, caller: Caller, reader: LiveReader?)] = [:]
        var isClosed = false
        /// The session of `watchPool` that receives notifications (`Connection.openCount`); 0: none.
        var listenedSession = 0
    }

    private static let tickInterval = Duration.milliseconds(250)
    /// The same without any stream.
    private static let idleTickInterval = Duration.seconds(1)
    /// The maximum wait while no reader is idle. A first subscriber and the end of a read end it.
    private static let noReaderInterval = Duration.seconds(10)
    /// Write timeout at a shutdown, so that a device that does not read does not delay it.
    private static let lastWriteMax = Duration.seconds(2)

    private let pool: Pool
    private let watchPool: Pool
    private let limits: GatewayLimits
    private let names: KindNames
    private let logger: Logger
    /// Ends the wait for a notification, when the awaited environments change.
    private let wakeup: Wakeup
    private let state = Mutex(State())

    /// - Parameters:
    ///   - pool: The readers' own connections, so that downloads do not delay changes.
    ///   - watchPool: One connection that polls for changes.
    /// - Throws: `NoFileDescriptor`
    init(pool: Pool, watchPool: Pool, limits: GatewayLimits, names: KindNames, logger: Logger) throws {
        wakeup = try Wakeup()
        self.names = names
        self.pool = pool
        self.watchPool = watchPool
        self.limits = limits
        self.logger = logger
    }

    /// Number of open streams.
    var count: Int { state.withLock { $0.buffers.count } }

    /// Number of live streams of people's devices by environment, without streams that only download.
    var deviceCounts: [EnvironmentID: Int] {
        let streams = state.withLock { Array($0.buffers.values) }
        return streams.reduce(into: [:]) { counts, stream in
            guard stream.reader != nil, case .person = stream.caller else { return }
            counts[stream.caller.environment, default: 0] += 1
        }
    }

    /// Registers a session's send buffer, for timeouts and shutdown.
    func register(_ buffer: SendBuffer, of caller: Caller) {
        let isClosed = state.withLock { state in
            state.buffers[ObjectIdentifier(buffer)] = (buffer, caller, nil)
            return state.isClosed
        }
        if isClosed { buffer.close() }
    }

    /// Subscribes a session to changes; see ``LiveReader``.
    func subscribe(
        _ buffer: SendBuffer, in environment: EnvironmentID, realms: [OpenRealm] = [], kinds: KindSelection? = nil,
        from counter: EnvironmentCounter
    ) {
        let reader: LiveReader? = state.withLock { state in
            // The session may have ended while its next page was being read.
            guard state.buffers[ObjectIdentifier(buffer)] != nil else { return nil }
            let reader =
                state.readers[environment]
                ?? LiveReader(
                    environment: environment, pool: pool, limits: limits, names: names, logger: logger, wakeup: wakeup)
            state.readers[environment] = reader
            state.buffers[ObjectIdentifier(buffer)]?.reader = reader
            return reader
        }
        reader?.subscribe(buffer, realms: realms, kinds: kinds, from: counter)
    }

    func unregister(_ buffer: SendBuffer) {
        let reader = state.withLock { state in
            state.buffers.removeValue(forKey: ObjectIdentifier(buffer))?.reader
        }
        reader?.unsubscribe(buffer)
    }

    /// Reads the changes of a commit without waiting for the next poll.
    func committed(in environment: EnvironmentID) { state.withLock { $0.readers[environment] }?.wake() }

    /// Ends the streams of callers whose access was revoked.
    func close(where isRevoked: (Caller) -> Bool) {
        let revoked = state.withLock { state in state.buffers.values.filter { isRevoked($0.caller) }.map(\.buffer) }
        for buffer in revoked { buffer.close() }
    }

    /// Runs the timer of all sessions. At a shutdown it ends them, so that the server can stop.
    func run() async throws {
        await cancelWhenGracefulShutdown {
            async let polling: Void = self.pollChanges()
            var gauges: [EnvironmentID: Gauge] = [:]
            while !Task.isCancelled {
                try? await Task.sleep(for: self.count == 0 ? Self.idleTickInterval : Self.tickInterval)
                self.tick(lagMax: self.limits.lagMax)
                Self.record(self.deviceCounts, in: &gauges)
            }
            await polling
        }
        let buffers = state.withLock { state in
            state.isClosed = true
            return state.buffers.values.map(\.buffer)
        }
        for buffer in buffers { buffer.close() }
        while count > 0, !Task.isCancelled {
            try? await Task.sleep(for: Self.tickInterval)
            tick(lagMax: min(limits.lagMax, Self.lastWriteMax))
        }
    }

    /// Exports the number of devices of each environment. An environment without devices has no series.
    private static func record(_ counts: [EnvironmentID: Int], in gauges: inout [EnvironmentID: Gauge]) {
        for (environment, gauge) in gauges where counts[environment] == nil {
            gauge.destroy()
            gauges[environment] = nil
        }
        for (environment, count) in counts {
            let gauge =
                gauges[environment]
                ?? Gauge(label: "fieldpost.live.devices", dimensions: [("environment", "\(environment)")])
            gauges[environment] = gauge
            gauge.record(count)
        }
    }

    /// Polls for environments with new changes, and wakes their readers. Without recent changes, it waits for a
    /// notification.
    private func pollChanges() async {
        var backoff = Backoff(first: .milliseconds(50), waitMax: .seconds(2))
        var nextFullPoll = ContinuousClock.now
        var active: [LiveReader] = []
        while !Task.isCancelled {
            let now = ContinuousClock.now
            var polled = active
            if now >= nextFullPoll {
                nextFullPoll = now + limits.liveIdleInterval
                polled = state.withLock { Array($0.readers.values) }
                active = polled.filter { $0.isActive(now: now) }
            }
            do {
                if state.withLock({ Array($0.readers.values) }).allSatisfy({ $0.isQuiet(now: now) }) {
                    nextFullPoll = .now
                    try await waitForChanges()
                } else {
                    try await wakeChanged(polled)
                    try? await Task.sleep(for: active.isEmpty ? limits.liveIdleInterval : limits.liveInterval)
                }
                backoff.succeeded()
            } catch {
                logger.warning("polling for changes failed", metadata: ["error": "\(error)"])
                try? await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
            }
        }
    }

    private func wakeChanged(_ readers: [LiveReader]) async throws {
        let positions = readers.compactMap(\.idlePosition)
        if positions.isEmpty { return }
        let environments = try await watchPool.run { connection in
            try connection.run(ReaderPosition.changed(positions)).decode(EnvironmentID.self)
        }
        for environment in environments { committed(in: environment) }
    }

    /// Wakes the readers of changed environments. If there are none, waits until a change is notified.
    private func waitForChanges() async throws {
        let positions = state.withLock { Array($0.readers.values) }.compactMap(\.idlePosition)
        let (wakeup, listened) = (wakeup, state.withLock { $0.listenedSession })
        let (environments, session) = try await watchPool.run(interruptedBy: wakeup) { [limits] connection in
            guard !positions.isEmpty else {
                if connection.openCount == listened { try connection.run(AwaitedPositions.unlisten) }
                wakeup.wait(atMost: Self.noReaderInterval)
                return ([EnvironmentID](), 0)
            }
            if connection.openCount != listened { try connection.run(AwaitedPositions.listen) }
            let session = connection.openCount
            let ids = positions.map(\.environment.rawValue)
            let results = try connection.run(
                AwaitedPositions.request(where: "e.id = ANY (\(ids))") + [ReaderPosition.changed(positions)])
            let changed = try results[results.count - 1].decode(EnvironmentID.self)
            if !changed.isEmpty { return (changed, session) }
            let writtenCount = try results[results.count - 2][0].decode(Int64.self)
            let waitMax = AwaitedPositions.pollInterval
            let isNotified = try connection.waitForNotification(
                atMost: writtenCount == 0 ? waitMax : min(limits.liveIdleInterval, waitMax), or: wakeup)
            guard isNotified else { return ([], session) }
            return (try connection.run(ReaderPosition.changed(positions)).decode(EnvironmentID.self), session)
        }
        state.withLock { $0.listenedSession = session }
        for environment in environments { committed(in: environment) }
    }

    private func tick(lagMax: Duration) {
        let now = SteadyClock.nanoseconds()
        let (buffers, readers) = state.withLock { (Array($0.buffers.values), Array($0.readers.values)) }
        let positions = Dictionary(uniqueKeysWithValues: readers.map { (ObjectIdentifier($0), $0.consistentPosition) })
        for (buffer, _, reader) in buffers {
            let position = reader.flatMap { positions[ObjectIdentifier($0)] } ?? 0
            buffer.tick(now: now, position: position, lagMax: lagMax)
        }
    }
}

import Essentials
import Synchronization

/// The send buffer of one live device: filled by the environment's reader, emptied by the device's session.
///
/// Its size is limited: on overflow its content is dropped, and the session catches up from the database.
final class SendBuffer: Sendable {
    enum Event: Sendable {
        case deliveries([LiveDelivery])
        /// The stream was idle; the device has everything up to the position.
        case idle(position: Int64)
        /// The session must read the database: the buffer overflowed, or the session reads the log itself.
        case lagging
        case closed
    }

    private struct State {
        var queue: [LiveDelivery] = []
        var bytes = 0
        var isLagging = false
        var isClosed = false
        var waiter: CheckedContinuation<Event, Never>?
        /// Time of the next keepalive, and start of the current write; nanoseconds of the steady clock.
        var keepaliveAt = Int64.max
        var writingSince: Int64?

        mutating func discard(isLagging: Bool) {
            queue = []
            bytes = 0
            self.isLagging = isLagging
        }
    }

    private let state = Mutex(State())
    private let bytesMax: Int
    /// Nanoseconds of the steady clock.
    private let expiresAt: Int64
    private let disconnect: @Sendable () -> Void

    /// - Parameters:
    ///   - expiresIn: Time until the device's token expires.
    ///   - disconnect: Closes the connection of a device whose write timed out.
    init(bytesMax: Int, expiresIn: Duration, disconnect: @escaping @Sendable () -> Void) {
        self.bytesMax = bytesMax
        self.expiresAt = SteadyClock.nanoseconds() + expiresIn.nanoseconds
        self.disconnect = disconnect
    }

    // MARK: For the session

    /// Waits for the next event.
    func next() async -> Event {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: Event? = state.withLock { state in
                    let ready = Self.take(&state)
                    if ready == nil { state.waiter = continuation }
                    return ready
                }
                if let ready { continuation.resume(returning: ready) }
            }
        } onCancel: {
            close()
        }
    }

    /// Discards the queued deliveries before a snapshot is read.
    func clear() { state.withLock { $0.discard(isLagging: false) } }

    /// Sets the time of the next keepalive; a token that expires earlier ends the wait.
    func setKeepalive(after interval: Duration) {
        let now = SteadyClock.nanoseconds()
        state.withLock { $0.keepaliveAt = min(now + interval.nanoseconds, expiresAt) }
    }

    func isWriting(_ isWriting: Bool) {
        let now = isWriting ? SteadyClock.nanoseconds() : nil
        state.withLock { $0.writingSince = now }
    }

    // MARK: For the reader and the hub

    func push(_ delivery: LiveDelivery) {
        wake { state in
            guard !state.isLagging, !state.isClosed else { return nil }
            state.queue.append(delivery)
            state.bytes += delivery.byteCount
            if state.bytes > bytesMax { state.discard(isLagging: true) }
            return state.waiter == nil ? nil : Self.take(&state)
        }
    }

    /// Discards the queued deliveries and makes the session read the database.
    func markLagging() {
        wake { state in
            state.discard(isLagging: true)
            return state.waiter == nil ? nil : Self.take(&state)
        }
    }

    func close() {
        wake { state in
            state.isClosed = true
            return .closed
        }
    }

    /// Emits a due keepalive, and closes the connection if a write exceeds `lagMax`.
    ///
    /// - Parameter position: Everything up to here was delivered before this call.
    func tick(now: Int64, position: Int64, lagMax: Duration) {
        let isStuck = state.withLock { state in state.writingSince.map { now - $0 > lagMax.nanoseconds } ?? false }
        if isStuck { disconnect() }
        wake { state in
            guard now >= state.keepaliveAt, state.waiter != nil else { return nil }
            return Self.take(&state) ?? .idle(position: position)
        }
    }

    private func wake(_ decide: (inout State) -> Event?) {
        let (waiter, next): (CheckedContinuation<Event, Never>?, Event?) = state.withLock { state in
            let next = decide(&state)
            return next == nil ? (nil, nil) : (state.waiter.take(), next)
        }
        if let waiter, let next { waiter.resume(returning: next) }
    }

    private static func take(_ state: inout State) -> Event? {
        if state.isClosed { return .closed }
        if state.isLagging {
            state.isLagging = false
            return .lagging
        }
        if state.queue.isEmpty { return nil }
        let queue = state.queue
        state.queue = []
        state.bytes = 0
        return .deliveries(queue)
    }
}

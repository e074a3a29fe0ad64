import Essentials
import Synchronization

/// What one live device is to be told next: filled by the environment's reader, emptied by the device's session.
///
/// It is bounded: a device that reads too slowly loses what is queued, and catches up from the database by itself.
final class SendBuffer: Sendable {
    enum Disposition: Sendable {
        case deliveries([Delivery])
        /// Nothing happened for a while; the device has everything up to the position.
        case quiet(position: Int64)
        /// Something was dropped, or is for the session to read by itself.
        case lagging
        case closed
    }

    private struct State {
        var queue: [Delivery] = []
        var bytes = 0
        var isLagging = false
        var isClosed = false
        var waiter: CheckedContinuation<Disposition, Never>?
        /// When a silence ends, and since when a write takes; nanoseconds of the steady clock.
        var quietAt = Int64.max
        var writingSince: Int64?
    }

    private let state = Mutex(State())
    private let bytesMax: Int
    /// Nanoseconds of the steady clock.
    private let expiresAt: Int64
    private let disconnect: @Sendable () -> Void

    /// - Parameters:
    ///   - expiresIn: When the device's token ends.
    ///   - disconnect: Cuts the connection of a device that takes nothing.
    init(bytesMax: Int, expiresIn: Duration, disconnect: @escaping @Sendable () -> Void) {
        self.bytesMax = bytesMax
        self.expiresAt = SteadyClock.nanoseconds() + expiresIn.nanoseconds
        self.disconnect = disconnect
    }

    // MARK: The session's side

    /// Waits for the next thing to do.
    func next() async -> Disposition {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let ready: Disposition? = state.withLock { state in
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

    /// Forgets what is queued, because a snapshot is about to be read.
    func clear() {
        state.withLock { state in
            state.queue = []
            state.bytes = 0
            state.isLagging = false
        }
    }

    /// The session's silence ends after `rest`, or when the token does.
    func restMax(_ rest: Duration) {
        let now = SteadyClock.nanoseconds()
        state.withLock { $0.quietAt = min(now + rest.nanoseconds, expiresAt) }
    }

    func isWriting(_ isWriting: Bool) {
        let now = isWriting ? SteadyClock.nanoseconds() : nil
        state.withLock { $0.writingSince = now }
    }

    // MARK: The other side

    func push(_ delivery: Delivery) {
        wake { state in
            guard !state.isLagging, !state.isClosed else { return nil }
            state.queue.append(delivery)
            state.bytes += delivery.byteCount
            if state.bytes > bytesMax {
                state.queue = []
                state.bytes = 0
                state.isLagging = true
            }
            return state.waiter == nil ? nil : Self.take(&state)
        }
    }

    /// Drops what is queued: the reader itself has lost its place, or the session reads by itself.
    func lag() {
        wake { state in
            state.queue = []
            state.bytes = 0
            state.isLagging = true
            return state.waiter == nil ? nil : Self.take(&state)
        }
    }

    func close() {
        wake { state in
            state.isClosed = true
            return .closed
        }
    }

    /// Ends a silence that lasts, and a connection that takes nothing.
    ///
    /// - Parameter position: Everything up to here was pushed before this call.
    func tick(now: Int64, position: Int64, lagMax: Duration) {
        let isStuck = state.withLock { state in state.writingSince.map { now - $0 > lagMax.nanoseconds } ?? false }
        if isStuck { disconnect() }
        wake { state in
            guard now >= state.quietAt, state.waiter != nil else { return nil }
            return Self.take(&state) ?? .quiet(position: position)
        }
    }

    private func wake(_ decide: (inout State) -> Disposition?) {
        let (waiter, next): (CheckedContinuation<Disposition, Never>?, Disposition?) = state.withLock { state in
            let next = decide(&state)
            return next == nil ? (nil, nil) : (state.waiter.take(), next)
        }
        if let waiter, let next { waiter.resume(returning: next) }
    }

    private static func take(_ state: inout State) -> Disposition? {
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

internal import CCurl
internal import Essentials
import Glibc
import Synchronization

/// Runs all transfers of one client on one thread with libcurl's multi handle and epoll: an idle transfer needs no CPU.
@safe final class TransferLoop {
    private let multi: UnsafeMutableRawPointer
    private let epoll: Int32
    private let commands: CommandQueue
    private let configuration: Client.Configuration
    private var active: [UInt64: Transfer] = [:]
    /// Reusable easy handles, at most `poolCountMax`.
    private var pool: [Transfer] = []
    private var timer: ContinuousClock.Instant?
    /// The earliest deadline that libcurl does not manage.
    private var nextDeadline: ContinuousClock.Instant?
    private var isStopped = false

    private static let poolCountMax = 512
    private static let eventsMax = 256

    /// Runs until the client is released or shut down.
    static func run(_ commands: CommandQueue, _ configuration: Client.Configuration) {
        if let loop = TransferLoop(commands, configuration) { loop.run() }
        for command in commands.take(isLast: true) {
            switch command {
            case .send(_, let continuation): continuation.resume(returning: .failure(.shutDown(.notSent)))
            case .stream(_, let buffer, _): buffer.finish(.shutDown(.notSent))
            case .cancel, .resume, .stop: break
            }
        }
    }

    private init?(_ commands: CommandQueue, _ configuration: Client.Configuration) {
        guard isLibraryReady, let multi = unsafe curl_multi_init() else { return nil }
        unsafe self.multi = unsafe multi
        epoll = epoll_create1(Int32(EPOLL_CLOEXEC))
        self.commands = commands
        self.configuration = configuration
        let context = unsafe Unmanaged.passUnretained(self).toOpaque()
        unsafe curl_multi_set_callbacks(multi, onSocketChange, onTimerChange, context)
        unsafe curl_multi_set_number(
            multi, CURLMOPT_MAX_HOST_CONNECTIONS, configuration.connectionsPerHostMax)
        unsafe curl_multi_set_number(multi, CURLMOPT_MAXCONNECTS, configuration.connectionsIdleMax)
        watch(commands.eventDescriptor, UInt32(EPOLLIN.rawValue), isWatched: false)
    }

    deinit {
        for transfer in active.values { unsafe transfer.leave(multi) }
        unsafe curl_multi_cleanup(multi)
        close(epoll)
    }

    private func run() {
        unsafe withUnsafeTemporaryAllocation(of: epoll_event.self, capacity: TransferLoop.eventsMax) { events in
            while !isStopped {
                let count = unsafe epoll_wait(
                    epoll, events.baseAddress, Int32(events.count), waitMilliseconds())
                for index in 0..<max(0, Int(count)) {
                    unsafe handle(events[index].data.fd, events[index].events)
                }
                for command in commands.take() { execute(command) }
                runTimers()
                finishCompleted()
            }
        }
        failAll()
    }

    private func handle(_ descriptor: Int32, _ events: UInt32) {
        guard descriptor != commands.eventDescriptor else {
            var count: eventfd_t = 0
            unsafe eventfd_read(descriptor, &count)
            return
        }
        var bits: Int32 = 0
        if events & UInt32(EPOLLIN.rawValue) != 0 { bits |= CURL_CSELECT_IN }
        if events & UInt32(EPOLLOUT.rawValue) != 0 { bits |= CURL_CSELECT_OUT }
        // Errors and hang-ups are detected by reading.
        if events & UInt32(EPOLLERR.rawValue | EPOLLHUP.rawValue) != 0 {
            bits |= CURL_CSELECT_IN | CURL_CSELECT_ERR
        }
        act(on: descriptor, bits)
    }

    private func act(on descriptor: Int32, _ bits: Int32) {
        var running: Int32 = 0
        unsafe curl_multi_socket_action(multi, descriptor, bits, &running)
    }

    private func execute(_ command: CommandQueue.Command) {
        switch command {
        case .send(let queued, let continuation):
            start(queued, .whole(continuation))
        case .stream(let queued, let buffer, let idleMax):
            start(queued, .stream(buffer, idleMax: idleMax))
        case .cancel(let id):
            guard let transfer = active[id] else { return }
            finish(transfer, .failure(.cancelled(transfer.outcome)))
        case .resume(let id):
            active[id]?.resume()
        case .stop:
            isStopped = true
        }
    }

    private func start(_ queued: QueuedRequest, _ sink: Transfer.Sink) {
        if queued.isCancelled.load(ordering: .acquiring) { return sink.fail(.cancelled(.notSent)) }
        guard active.count < configuration.inFlightMax else {
            return sink.fail(
                HTTPError(
                    outcome: .notSent, code: CURLE_AGAIN.rawValue,
                    message: "\(configuration.inFlightMax) requests are in flight, the maximum of this client"))
        }
        guard let transfer = pool.popLast() ?? Transfer(configuration) else {
            return sink.fail(HTTPError(outcome: .notSent, code: CURLE_OUT_OF_MEMORY.rawValue, message: "out of memory"))
        }
        if let error = transfer.prepare(queued, sink) { return sink.fail(error) }
        active[queued.id] = transfer
        unsafe transfer.join(multi)
        if let deadline = transfer.deadline(at: .now) { scheduleTimeoutCheck(at: deadline) }
    }

    private func finishCompleted() {
        var waiting: Int32 = 0
        while let message = unsafe curl_multi_info_read(multi, &waiting) {
            guard unsafe message.pointee.msg == CURLMSG_DONE, let easy = unsafe message.pointee.easy_handle,
                let transfer = unsafe Transfer.from(curl_get_context(easy))
            else { continue }
            finish(transfer, unsafe transfer.result(of: message.pointee.data.result))
        }
    }

    private func finish(_ transfer: Transfer, _ result: Result<Response, HTTPError>) {
        active[transfer.id] = nil
        unsafe transfer.leave(multi)
        transfer.finish(result)
        if pool.count < TransferLoop.poolCountMax { pool.append(transfer) }
    }

    private func failAll() {
        for transfer in active.values { finish(transfer, .failure(.shutDown(transfer.outcome))) }
    }

    // MARK: Timers

    private func waitMilliseconds() -> Int32 {
        let deadline = [timer, nextDeadline].compactMap(\.self).min()
        guard let deadline else { return -1 }
        let rest = ContinuousClock.now.duration(to: deadline)
        guard rest > .zero else { return 0 }
        return Int32(clamping: rest.milliseconds(roundedUp: true))
    }

    private func runTimers() {
        if let deadline = timer, deadline <= .now {
            timer = nil
            act(on: CURL_SOCKET_TIMEOUT, 0)
        }
        if let deadline = nextDeadline, deadline <= .now { failTimedOut() }
    }

    private func scheduleTimeoutCheck(at instant: ContinuousClock.Instant) {
        nextDeadline = min(nextDeadline ?? instant, instant)
    }

    private func failTimedOut() {
        nextDeadline = nil
        let now = ContinuousClock.now
        for transfer in active.values {
            guard let deadline = transfer.deadline(at: now) else { continue }
            if deadline > now {
                scheduleTimeoutCheck(at: deadline)
            } else {
                finish(transfer, .failure(transfer.timedOut))
            }
        }
    }

    fileprivate func setTimer(milliseconds: Int) {
        timer = milliseconds < 0 ? nil : .now + .milliseconds(milliseconds)
    }

    // MARK: Sockets

    fileprivate func watch(_ descriptor: Int32, _ events: UInt32, isWatched: Bool) {
        var event = unsafe epoll_event(events: events, data: epoll_data_t(fd: descriptor))
        if unsafe epoll_ctl(epoll, isWatched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, descriptor, &event) != 0 {
            unsafe epoll_ctl(epoll, isWatched ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, descriptor, &event)
        }
    }

    fileprivate func socketChanged(_ descriptor: Int32, to what: Int32, isWatched: Bool) {
        if what == CURL_POLL_REMOVE {
            epoll_ctl(epoll, EPOLL_CTL_DEL, descriptor, nil)
            unsafe curl_multi_assign(multi, descriptor, nil)
            return
        }
        var events: UInt32 = 0
        if what & CURL_POLL_IN != 0 { events |= UInt32(EPOLLIN.rawValue) }
        if what & CURL_POLL_OUT != 0 { events |= UInt32(EPOLLOUT.rawValue) }
        watch(descriptor, events, isWatched: isWatched)
        // Any non-null pointer marks the socket as watched.
        unsafe curl_multi_assign(multi, descriptor, multi)
    }
}

private let onSocketChange: curl_socket_callback = { _, descriptor, what, context, known in
    guard let context = unsafe context else { return 0 }
    let loop = unsafe Unmanaged<TransferLoop>.fromOpaque(context).takeUnretainedValue()
    loop.socketChanged(descriptor, to: what, isWatched: unsafe known != nil)
    return 0
}

private let onTimerChange: curl_multi_timer_callback = { _, milliseconds, context in
    guard let context = unsafe context else { return 0 }
    unsafe Unmanaged<TransferLoop>.fromOpaque(context).takeUnretainedValue().setTimer(milliseconds: milliseconds)
    return 0
}

/// Initialises libcurl once, on the thread that creates the first client: on the client's own thread, the
/// initialisation could coincide with the exit of a process that failed to start, and crash it.
let isLibraryReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

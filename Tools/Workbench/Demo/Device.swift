import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model

/// A device: its token, its copy of its realms, its outgoing queue, online or offline.
///
/// The caller enqueues mutations and takes updates. ``run()`` does the rest: one stream, one request of mutations at a
/// time, both retried with exponential backoff.
actor Device {
    /// The changes and responses since the last call of ``takeUpdates()``.
    struct Updates: Sendable {
        var changed: Set<ObjectAddress> = []
        var answers: [QueuedMutation] = []
    }

    let person: Organisation.Person
    let realm: RealmPath
    /// Yields after updates; several updates may yield once.
    private nonisolated let ticks: AsyncStream<Void>

    private var gateway: GatewayClient
    private let tokens: DeviceTokens
    private var token: String?
    private var state: DeviceState
    /// The time from a request for submission until the stream has `released`.
    private let clock = LatencyClock()
    private var updates = Updates()
    private(set) var isOnline = true
    /// All realms that were ever opened.
    private(set) var opened: Set<RealmPath> = []
    /// The last error.
    private(set) var lastError: String?
    /// The time from the first attempt of a request, including retries, until its response.
    private var sending = WaitClock()

    /// The most mutations in one request.
    static let batchCountMax = 100
    private static let backoff = Backoff(first: .milliseconds(200), waitMax: .seconds(3))

    private let updateTick: AsyncStream<Void>.Continuation
    /// Of the present ``run()``.
    private var workTick: AsyncStream<Void>.Continuation?
    private var onlineTick: AsyncStream<Void>.Continuation?
    private var stream: Task<Void, any Error>?

    init(
        person: Organisation.Person, gateway: GatewayClient, tokens: DeviceTokens, token: String?, clientID: UUID
    ) throws {
        self.person = person
        realm = try RealmPath.user(person.email)
        self.gateway = gateway
        self.tokens = tokens
        self.token = token
        state = DeviceState(clientID: clientID)
        (ticks, updateTick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    // MARK: The person's side

    /// Mutations that have no answer yet.
    var waitingCount: Int { state.queue.count }

    /// The copy as of the last consistent checkpoint.
    var copy: DeviceCopy { state.copy }

    /// The optimistic view by realm: the copy, and the mutations that are not in it yet.
    var contents: [RealmPath: RealmContent] { state.contents }

    var measured: [Duration] { clock.measured }

    /// The address of its gateway.
    var gatewayURL: String { gateway.url }

    /// The queue of its mutations, with their outcomes.
    var queue: DeviceQueue { state.queue }

    /// Returns the longest time from a first attempt to a response since the last call, including a current one.
    func takeLongestSending() -> Duration { sending.takeLongest() }

    /// Returns entries as of the last consistent checkpoint.
    func entries(_ ids: Set<UUID>) -> [UUID: SeenEntry] {
        ids.reduce(into: [:]) { seen, id in
            seen[id] = copy[realm, ObjectID(kind: .timeEntry, id: id)].flatMap { SeenEntry($0) }
        }
    }

    /// - Parameter path: The person's own realm unless given.
    /// - Throws: `InvalidMutation`; the mutations before it are enqueued.
    func enqueue(_ mutations: [Mutation], in path: RealmPath? = nil) throws {
        for mutation in mutations { _ = try state.enqueue(mutation, in: path ?? realm) }
        workTick?.yield()
    }

    /// Waits for updates.
    ///
    /// - Returns: `false` if the task was cancelled.
    nonisolated func waitForUpdates() async -> Bool {
        for await _ in ticks { return true }
        return false
    }

    func takeUpdates() -> Updates {
        defer { updates = Updates() }
        return updates
    }

    /// Waits for a condition, which is checked after each checkpoint and each response.
    ///
    /// - Throws: `CancellationError` when the task was cancelled before.
    func until(_ isMet: @Sendable (DeviceState) -> Bool) async throws {
        _ = try await value { state -> Bool? in isMet(state) ? true : nil }
    }

    /// Waits until `read` returns a value. It is called after each checkpoint and each response.
    ///
    /// - Throws: `CancellationError` when the task was cancelled before.
    func value<Value: Sendable>(_ read: @Sendable (DeviceState) -> Value?) async throws -> Value {
        let (ticks, tick) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        watcherCount += 1
        let number = watcherCount
        watchers[number] = tick
        defer { watchers[number] = nil }
        if let value = read(state) { return value }
        for await _ in ticks {
            if let value = read(state) { return value }
        }
        throw CancellationError()
    }

    private var watchers: [Int: AsyncStream<Void>.Continuation] = [:]
    private var watcherCount = 0

    private func notify() {
        updateTick.yield()
        for watcher in watchers.values { watcher.yield() }
    }

    /// Goes offline for a time.
    ///
    /// - Returns: The task that reconnects.
    func leave(for duration: Duration) -> Task<Void, any Error> {
        goOffline()
        return Task {
            try await Task.sleep(for: duration)
            goOnline()
        }
    }

    /// Closes the stream; the queue is kept.
    func goOffline() {
        isOnline = false
        clock.wentOffline()
        stream?.cancel()
    }

    func goOnline() {
        isOnline = true
        onlineTick?.yield()
        workTick?.yield()
    }

    // MARK: Running

    /// Runs until the task is cancelled; it may be called again afterwards.
    func run() async throws {
        let (work, workTick) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let (online, onlineTick) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (self.workTick, self.onlineTick) = (workTick, onlineTick)
        workTick.yield()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.follow(online) }
            group.addTask { try await self.sendQueued(work) }
            try await group.next()
            group.cancelAll()
        }
    }

    /// Fetches all updates once: afterwards the copy is current, and the queue has no mutation that the gateway may
    /// have lost.
    ///
    /// - Throws: The first error.
    func refresh() async throws {
        do {
            try await readStream(isLive: false)
            guard state.queue.hasToSend else { return }
            while state.queue.hasToSend { try await sendBatch() }
            try await readStream(isLive: false)
        } catch {
            record(error)
            throw error
        }
    }

    /// Stores the person's Compass login, with retries.
    func storeCompassLogin(_ user: String, password: String) async throws {
        var backoff = Device.backoff
        while true {
            do {
                return try await gateway.putCompassLogin(user, password: password, token: currentToken())
            } catch {
                record(error)
                try await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
            }
        }
    }

    private func follow(_ onlineTicks: AsyncStream<Void>) async throws {
        var backoff = Device.backoff
        while true {
            try Task.checkCancellation()
            guard isOnline else {
                for await _ in onlineTicks { break }
                continue
            }
            let reading = Task { try await self.readStream(isLive: true) }
            stream = reading
            let outcome = await withTaskCancellationHandler {
                await reading.result
            } onCancel: {
                reading.cancel()
            }
            guard isOnline else { continue }
            if case .failure(let error) = outcome { record(error) }
            if madeProgress { backoff.succeeded() }
            madeProgress = false
            try await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
        }
    }

    /// Whether the stream received anything since it was opened.
    private var madeProgress = false

    private func readStream(isLive: Bool) async throws {
        let token = try await currentToken()
        let lines = try await gateway.sync(token: token, body: state.syncRequest(isLive: isLive))
        for try await line in lines {
            guard let line = try SyncLine.read(line) else { continue }
            take(line)
        }
    }

    private func take(_ line: SyncLine) {
        madeProgress = true
        if case .open(let path, _) = line { opened.insert(path) }
        let changed = state.take(line).changed
        if state.queue.isInDoubt { workTick?.yield() }
        if case .checkpoint = line, changed.isEmpty { notify() }
        guard !changed.isEmpty else { return }
        let now = ContinuousClock.now
        for object in changed.lazy.map(\.object) where object.kind == .timeEntry && clock.isRunning(for: object.id) {
            if let held = copy[realm, object], SeenEntry(held)?.status == .released {
                clock.stop(object.id, at: now)
            }
        }
        updates.changed.formUnion(changed)
        notify()
    }

    /// Whether an object that the copy lacks may still arrive: its mutation is unsent, or its response is newer than
    /// the copy.
    func hasUnconfirmedChanges(_ entry: UUID) -> Bool {
        state.hasUnconfirmedChanges(ObjectAddress(realm, ObjectID(kind: .timeEntry, id: entry)))
    }

    private func sendQueued(_ workTicks: AsyncStream<Void>) async throws {
        for await _ in workTicks {
            var backoff = Device.backoff
            while isOnline, state.queue.hasToSend {
                do {
                    try await sendBatch()
                    backoff.succeeded()
                } catch {
                    record(error)
                    try await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
                }
            }
        }
    }

    /// Sends the oldest mutations; without a response they stay in the queue and are sent again.
    private func sendBatch() async throws {
        sending.begin()
        let token = try await currentToken()
        guard let request = state.nextRequest(countMax: Self.batchCountMax) else { return sending.giveUp() }
        let now = ContinuousClock.now
        for item in request.mutations where item.mutation.requestsSubmission { clock.start(item.mutation.id, at: now) }
        let response = try await gateway.send(request.body, token: token)
        guard let answer = try QueueResponse.read(status: response.status, body: response.body) else {
            throw GatewayClient.UnexpectedResponse(response)
        }
        let result = state.take(answer, to: request, newClientID: UUID())
        guard result.madeProgress else {
            throw GatewayClient.UnexpectedResponse(
                status: response.status, detail: "no answer to mutation \(request.mutations.first?.sequence ?? 0)")
        }
        sending.end()
        updates.answers += result.answers
        notify()
    }

    // MARK: Errors

    private func currentToken() async throws -> String {
        if let token { return token }
        let fresh = try await tokens.tokens(for: [person])
        token = fresh.first
        return fresh.first ?? ""
    }

    private func record(_ error: any Error) {
        if let refusal = error as? GatewayClient.UnexpectedResponse {
            if refusal.status == 401 { token = nil }
            if let url = refusal.movedTo {
                gateway = GatewayClient(client: gateway.client, url: url)
            }
        }
        if (error as? HTTPError)?.isCancelled ?? (error is CancellationError) { return }
        lastError = (error as? HTTPError)?.message ?? "\(error)"
    }
}

extension Mutation {
    /// Whether the mutation requests an entry's submission.
    fileprivate var requestsSubmission: Bool {
        fields.flatMap { try? JSONObject($0) }?.isTrue(EntryField.submitRequested.rawValue) ?? false
    }
}

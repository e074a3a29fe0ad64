import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import Model

/// A phone: its token, its copy of its realms, its outgoing queue, online or not.
///
/// Whoever uses it queues mutations and takes the news. The rest happens in ``run()``: one stream, one request of
/// mutations at a time, both opened again with growing pauses whenever anything on the way is away.
actor Device {
    /// What has happened since it was asked for the last time.
    struct News: Sendable {
        var changed: Set<ObjectAddress> = []
        var answers: [QueuedMutation] = []
    }

    let person: Organisation.Person
    let realm: RealmPath
    /// Ticks when there are news; several ticks may fall together.
    private nonisolated let ticks: AsyncStream<Void>

    private var gateway: GatewayClient
    private let tokens: DeviceTokens
    private var token: String?
    private var state: DeviceState
    private var clock = ReleaseClock()
    private var news = News()
    private(set) var isOnline = true
    private(set) var receivedCount = 0
    /// Every realm that was ever opened.
    private(set) var opened: Set<RealmPath> = []
    /// The last thing that went wrong, for the person who waits.
    private(set) var trouble: String?
    private var sending = SendingClock()

    /// The most mutations in one request.
    static let batchCountMax = 100
    private static let backoff = Backoff(first: .milliseconds(200), waitMax: .seconds(3))

    private let newsTick: AsyncStream<Void>.Continuation
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
        (ticks, newsTick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    // MARK: The person's side

    /// Mutations that have no answer yet.
    var waitingCount: Int { state.queue.count }

    /// What the last whole checkpoint had.
    var copy: DeviceCopy { state.copy }

    /// What the device shows, by realm: the copy, and on top what is not in it yet.
    var contents: [RealmPath: RealmContent] { state.contents }

    var measured: [Duration] { clock.measured }

    /// Where it has its answers from.
    var gatewayURL: String { gateway.url }

    /// Who numbers its mutations, and what was decided about them.
    var queue: DeviceQueue { state.queue }

    /// The longest time from a first try to an answer, since it was asked the last time; also one that goes on.
    func takeLongestSending() -> Duration { sending.takeLongest(at: .now) }

    /// The entries as of the last whole checkpoint, of those asked for.
    func entries(_ ids: Set<UUID>) -> [UUID: SeenEntry] {
        ids.reduce(into: [:]) { seen, id in
            seen[id] = copy[realm, ObjectID(kind: .timeEntry, id: id)].flatMap { SeenEntry($0) }
        }
    }

    /// - Parameter path: The own realm unless given.
    /// - Throws: `InvalidMutation`; those before it are queued.
    func enqueue(_ mutations: [Mutation], in path: RealmPath? = nil) throws {
        for mutation in mutations { _ = try state.enqueue(mutation, in: path ?? realm) }
        workTick?.yield()
    }

    /// Waits for news.
    ///
    /// - Returns: False when the task was cancelled.
    nonisolated func hasNews() async -> Bool {
        for await _ in ticks { return true }
        return false
    }

    func takeNews() -> News {
        defer { news = News() }
        return news
    }

    /// Waits until the device is as it is to be: at each checkpoint and each answer it looks.
    ///
    /// - Throws: `CancellationError` when the task was cancelled before.
    func until(_ isSo: @Sendable (DeviceState) -> Bool) async throws {
        let (ticks, tick) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        watcherCount += 1
        let number = watcherCount
        watchers[number] = tick
        defer { watchers[number] = nil }
        if isSo(state) { return }
        for await _ in ticks where isSo(state) { return }
        throw CancellationError()
    }

    private var watchers: [Int: AsyncStream<Void>.Continuation] = [:]
    private var watcherCount = 0

    private func tell() {
        newsTick.yield()
        for watcher in watchers.values { watcher.yield() }
    }

    /// Runs all of them while `body` runs.
    static func whileRunning<Success: Sendable>(
        _ devices: [Device], _ body: @escaping @Sendable () async throws -> Success
    ) async throws -> Success {
        try await withThrowingTaskGroup(of: Success?.self) { group in
            for device in devices {
                group.addTask {
                    try await device.run()
                    return nil
                }
            }
            group.addTask { try await body() }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }

    /// Goes offline for so long.
    ///
    /// - Returns: The way back.
    func leave(for duration: Duration) -> Task<Void, any Error> {
        goOffline()
        return Task {
            try await Task.sleep(for: duration)
            comeBack()
        }
    }

    /// Closes the stream; what is queued stays queued.
    func goOffline() {
        isOnline = false
        clock.wentOffline()
        stream?.cancel()
    }

    func comeBack() {
        isOnline = true
        onlineTick?.yield()
        workTick?.yield()
    }

    // MARK: Running

    /// Lives until its task is cancelled; afterwards it may run again.
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

    /// Fetches what is new, once: afterwards the copy is whole as of now, and nothing that the gateway has lost is
    /// unsent.
    ///
    /// - Throws: What went wrong on the way.
    func refresh() async throws {
        do {
            try await readStream(isLive: false)
            guard state.queue.hasToSend else { return }
            while state.queue.hasToSend { try await sendBatch() }
            try await readStream(isLive: false)
        } catch {
            hearTrouble(error)
            throw error
        }
    }

    /// Stores the person's own login of Compass, however often something on the way is away.
    func storeCompassLogin(_ user: String, password: String) async throws {
        var backoff = Device.backoff
        while true {
            do {
                return try await gateway.putCompassLogin(user, password: password, token: currentToken())
            } catch {
                hearTrouble(error)
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
            if case .failure(let error) = outcome { hearTrouble(error) }
            if hasMovedOn { backoff.succeeded() }
            hasMovedOn = false
            try await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
        }
    }

    /// Whether the stream brought anything since it was opened.
    private var hasMovedOn = false

    private func readStream(isLive: Bool) async throws {
        let token = try await currentToken()
        let lines = try await gateway.sync(token: token, body: state.syncRequest(isLive: isLive))
        for try await line in lines {
            guard let line = try SyncLine.read(line) else { continue }
            take(line)
        }
    }

    private func take(_ line: SyncLine) {
        hasMovedOn = true
        if case .objects(_, _, let list) = line { receivedCount += list.count }
        if case .open(let path, _) = line { opened.insert(path) }
        let changed = state.take(line).changed
        if state.queue.isInDoubt { workTick?.yield() }
        if case .checkpoint = line, changed.isEmpty { tell() }
        guard !changed.isEmpty else { return }
        let now = ContinuousClock.now
        for object in changed.lazy.map(\.object) where object.kind == .timeEntry && clock.isRunning(for: object.id) {
            if let held = copy[realm, object], SeenEntry(held)?.status == .released {
                clock.seenReleased(object.id, at: now)
            }
        }
        news.changed.formUnion(changed)
        tell()
    }

    /// Whether an object that the copy lacks may still come: it was not sent, or its answer is newer than the copy.
    func isUnsettled(_ entry: UUID) -> Bool {
        state.isUnsettled(ObjectAddress(realm, ObjectID(kind: .timeEntry, id: entry)))
    }

    private func sendQueued(_ workTicks: AsyncStream<Void>) async throws {
        for await _ in workTicks {
            var backoff = Device.backoff
            while isOnline, state.queue.hasToSend {
                do {
                    try await sendBatch()
                    backoff.succeeded()
                } catch {
                    hearTrouble(error)
                    try await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
                }
            }
        }
    }

    /// Sends the oldest mutations; without an answer they stay where they are and go out again.
    private func sendBatch() async throws {
        sending.begin(at: .now)
        let token = try await currentToken()
        guard let request = state.nextRequest(countMax: Self.batchCountMax) else { return sending.giveUp() }
        let now = ContinuousClock.now
        for item in request.mutations where item.mutation.asksSubmission { clock.sent(item.mutation.id, at: now) }
        let response = try await gateway.send(request.body, token: token)
        guard let answer = try QueueAnswer.read(status: response.status, body: response.body) else {
            throw GatewayClient.Refusal(response)
        }
        let told = state.take(answer, to: request, newClientID: UUID())
        guard told.hasMovedOn else {
            throw GatewayClient.Refusal(
                status: response.status, detail: "no answer to mutation \(request.mutations.first?.sequence ?? 0)")
        }
        sending.end(at: .now)
        news.answers += told.answers
        tell()
    }

    // MARK: Trouble

    private func currentToken() async throws -> String {
        if let token { return token }
        let fresh = try await tokens.tokens(for: [person])
        token = fresh.first
        return fresh.first ?? ""
    }

    private func hearTrouble(_ error: any Error) {
        if let refusal = error as? GatewayClient.Refusal {
            if refusal.status == 401 { token = nil }
            if let url = refusal.movedTo {
                gateway = GatewayClient(client: gateway.client, url: url)
            }
        }
        if (error as? HTTPError)?.isCancelled ?? (error is CancellationError) { return }
        trouble = (error as? HTTPError)?.message ?? "\(error)"
    }
}

extension Mutation {
    /// Whether it asks for an entry's submission.
    fileprivate var asksSubmission: Bool {
        fields.flatMap { try? JSONObject($0) }?.isTrue(EntryField.submitRequested.rawValue) ?? false
    }
}

import Essentials
import FoundationEssentials
import HTTP
import Model
import Runtime

/// A phone: its token, its copy of its realms, its outgoing queue, online or not.
///
/// Whoever uses it queues mutations and takes the news. The rest happens in ``run()``: one stream, one request of
/// mutations at a time, both opened again with growing pauses whenever anything on the way is away.
actor Device {
    /// What has happened since it was asked for the last time.
    struct News: Sendable {
        var changed: Set<ObjectID> = []
        var answers: [DeviceOutbox.Answer] = []
    }

    let person: Organisation.Person
    let realm: RealmPath
    /// Ticks when there are news; several ticks may fall together.
    private nonisolated let ticks: AsyncStream<Void>

    private let gateway: GatewayClient
    private let tokens: DeviceTokens
    private var token: String?
    private(set) var copy = DeviceCopy()
    private var outbox: DeviceOutbox
    private var clock = ReleaseClock()
    private var news = News()
    private(set) var isOnline = true
    private(set) var receivedCount = 0
    /// The last thing that went wrong, for the person who waits.
    private(set) var trouble: String?

    private static let backoff = Backoff(first: .milliseconds(200), waitMax: .seconds(3))

    private let newsTick: AsyncStream<Void>.Continuation
    private let workTicks: AsyncStream<Void>
    private let workTick: AsyncStream<Void>.Continuation
    private let onlineTicks: AsyncStream<Void>
    private let onlineTick: AsyncStream<Void>.Continuation
    private var stream: Task<Void, any Error>?

    init(
        person: Organisation.Person, gateway: GatewayClient, tokens: DeviceTokens, token: String?, clientID: UUID
    ) throws {
        self.person = person
        realm = try RealmPath.user(person.email)
        self.gateway = gateway
        self.tokens = tokens
        self.token = token
        outbox = DeviceOutbox(clientID: clientID)
        (ticks, newsTick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (workTicks, workTick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        (onlineTicks, onlineTick) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
    }

    // MARK: The person's side

    /// Mutations that have no answer yet.
    var waitingCount: Int { outbox.count }

    var measured: [Duration] { clock.measured }

    /// The entries the device shows, of those asked for.
    func entries(_ ids: Set<UUID>) -> [UUID: SeenEntry] {
        ids.reduce(into: [:]) { seen, id in
            seen[id] = copy[realm, ObjectID(kind: .timeEntry, id: id)].flatMap { SeenEntry($0) }
        }
    }

    func enqueue(_ mutations: [DeviceMutation]) {
        for mutation in mutations { outbox.enqueue(mutation) }
        workTick.yield()
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

    /// Closes the stream; what is queued stays queued.
    func goOffline() {
        isOnline = false
        clock.wentOffline()
        stream?.cancel()
    }

    func comeBack() {
        isOnline = true
        onlineTick.yield()
        workTick.yield()
    }

    // MARK: Running

    /// Lives until its task is cancelled.
    func run() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.follow() }
            group.addTask { try await self.sendQueued() }
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
            guard hasToSend else { return }
            while hasToSend { try await sendBatch() }
            try await readStream(isLive: false)
        } catch {
            hearTrouble(error)
            throw error
        }
    }

    private func follow() async throws {
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
        let lines = try await gateway.sync(
            token: try await currentToken(), cursors: copy.cursors, isLive: isLive)
        for try await line in lines {
            guard let line = try SyncLine.read(line) else { continue }
            take(line)
        }
    }

    private func take(_ line: SyncLine) {
        hasMovedOn = true
        if case .objects(_, _, let list) = line { receivedCount += list.count }
        if case .open(_, isReset: true) = line, outbox.lastAnswered != nil {
            resetCount += 1
            workTick.yield()
        }
        let changed = copy.apply(line)
        guard !changed.isEmpty else { return }
        let now = ContinuousClock.now
        for object in changed where object.kind == .timeEntry && clock.isRunning(for: object.id) {
            if let held = copy[realm, object], SeenEntry(held)?.status == .released {
                clock.seenReleased(object.id, at: now)
            }
        }
        news.changed.formUnion(changed)
        newsTick.yield()
    }

    /// How often a realm was given anew, and how often the gateway was asked since whether it has lost its answers.
    private var resetCount = 0
    private var askedResetCount = 0
    /// The position of the last mutation of each object that was accepted.
    private var accepted: [UUID: Int64] = [:]

    private var hasToSend: Bool { outbox.count > 0 || askedResetCount < resetCount }

    /// Whether an object that the copy lacks may still come: it was not sent, or its answer is newer than the copy.
    func isUnsettled(_ object: UUID) -> Bool {
        askedResetCount < resetCount || outbox.holds(object) || accepted[object] ?? 0 > copy.position
    }

    private func sendQueued() async throws {
        for await _ in workTicks {
            var backoff = Device.backoff
            while isOnline, hasToSend {
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

    /// Sends the oldest mutations; without an answer they stay where they are and go out again. When there are none,
    /// the last answered one, whose answer is the same unless the gateway has lost it.
    private func sendBatch() async throws {
        let queued = outbox.nextBatch()
        let batch = queued.isEmpty ? outbox.lastAnswered.map { [$0] } ?? [] : queued
        let askedCount = resetCount
        let token = try await currentToken()
        let now = ContinuousClock.now
        for item in batch where item.mutation.asksSubmission { clock.sent(item.mutation.id, at: now) }
        let response = try await gateway.send(outbox.body(of: batch, realm: realm), token: token)
        switch response.status {
        case 200:
            let answers = try JSONDecoder().decode(MutationAnswers.self, from: Data(response.body))
            askedResetCount = askedCount
            let news = outbox.answered(answers.outcomes)
            for answer in news {
                if case .accepted(let position) = answer.outcome { accepted[answer.mutation.id] = position }
            }
            guard !news.isEmpty || queued.isEmpty else {
                throw GatewayClient.Refusal(status: 200, detail: "no answer to mutation \(batch.first?.sequence ?? 0)")
            }
            self.news.answers += news
            newsTick.yield()
        case 409:
            let gap = try JSONDecoder().decode(MutationGap.self, from: Data(response.body))
            askedResetCount = askedCount
            outbox.goBack(to: gap.expectedSequence, newClientID: UUID())
        default:
            throw GatewayClient.Refusal(
                status: response.status, detail: String(decoding: response.body.prefix(300), as: UTF8.self))
        }
    }

    // MARK: Trouble

    private func currentToken() async throws -> String {
        if let token { return token }
        let fresh = try await tokens.tokens(for: [person])
        token = fresh.first
        return fresh.first ?? ""
    }

    private func hearTrouble(_ error: any Error) {
        if let refusal = error as? GatewayClient.Refusal, refusal.status == 401 { token = nil }
        if (error as? HTTPError)?.isCancelled ?? (error is CancellationError) { return }
        trouble = (error as? HTTPError)?.message ?? "\(error)"
    }
}

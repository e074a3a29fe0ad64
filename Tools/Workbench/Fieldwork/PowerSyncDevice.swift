import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import PowerSyncModel

/// A device with an SDK of PowerSync and Fieldpost's connector.
///
/// It follows one stream, and uploads while that is connected. At random it loses the stream between two lines, and is
/// killed: its database is kept, its connections and requests end.
actor PowerSyncDevice: FieldworkDevice {
    /// Injected faults and completed requests.
    struct Counts: Sendable, CustomStringConvertible {
        var cuts = 0, kills = 0, uploads = 0, rejections = 0, checkpoints = 0

        var description: String {
            "\(cuts) cuts, \(kills) kills, \(uploads) uploads, \(rejections) rejections, \(checkpoints) checkpoints"
        }

        static func += (left: inout Self, right: Self) {
            left.cuts += right.cuts
            left.kills += right.kills
            left.uploads += right.uploads
            left.rejections += right.rejections
            left.checkpoints += right.checkpoints
        }
    }

    /// An injected fault.
    private enum Fault: Error { case cut, kill }

    let person: Organisation.Person
    let realm: RealmPath
    private(set) var isOnline = true
    private(set) var opened: Set<RealmPath> = []
    private(set) var violations: [String] = []
    private(set) var counts = Counts()

    private let gateway: GatewayClient
    private let tokens: DeviceTokens
    private var token: String?
    private var database: PowerSyncDatabase
    private var random: SplitMix64
    private var answers: [AnsweredMutation] = []
    private var lastNumber: Int64 = 0
    /// The highest position of an accepted entry, and the one that the next displayed checkpoint must have reached.
    private var (acceptedPosition, neededPosition): (Int64, Int64) = (0, 0)

    /// Whether a line of the stream has arrived: entries are uploaded only then.
    private var isConnected = false
    /// Whether the connector has compared its numbers with the server's since the app's start.
    private var isAligned = false
    private var stream: Task<Void, any Error>?
    private var upload: Task<Void, any Error>?
    private var workTick: AsyncStream<Void>.Continuation?
    private var onlineTick: AsyncStream<Void>.Continuation?

    private static let backoff = Backoff(first: .milliseconds(200), waitMax: .seconds(3))
    private static let batchCountMax = 20
    private static let violationCountMax = 10

    init(
        person: Organisation.Person, gateway: GatewayClient, tokens: DeviceTokens, token: String?, clientID: UUID,
        seed: UInt64
    ) throws {
        self.person = person
        realm = try RealmPath.user(person.email)
        self.gateway = gateway
        self.tokens = tokens
        self.token = token
        database = PowerSyncDatabase(clientID: clientID)
        random = SplitMix64(seed: seed)
    }

    // MARK: The person's side

    var contents: [RealmPath: RealmContent] { database.contents }
    /// Local writes included: a checkpoint must have replaced them.
    var received: [RealmPath: RealmContent] { database.contents }
    var waitingCount: Int { database.queue.count }

    func enqueue(_ mutations: [Mutation], in path: RealmPath?) {
        for mutation in mutations {
            let gap = random.happens(10) ? Int64.random(in: 1...3, using: &random) : 0
            database.write(mutation, in: path ?? realm, gap: gap)
        }
        workTick?.yield()
    }

    func takeAnswers() -> [AnsweredMutation] {
        defer { answers = [] }
        return answers
    }

    func goOffline() {
        isOnline = false
        isConnected = false
        stream?.cancel()
        upload?.cancel()
    }

    func goOnline() {
        isOnline = true
        onlineTick?.yield()
    }

    // MARK: Running

    func run() async throws {
        let (work, workTick) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let (online, onlineTick) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        (self.workTick, self.onlineTick) = (workTick, onlineTick)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await self.follow(online) }
            group.addTask { try await self.uploadEntries(work) }
            try await group.next()
            group.cancelAll()
        }
    }

    private func follow(_ onlineTicks: AsyncStream<Void>) async throws {
        var backoff = Self.backoff
        while true {
            try Task.checkCancellation()
            guard isOnline else {
                for await _ in onlineTicks { break }
                continue
            }
            let reading = Task { try await self.readStream() }
            stream = reading
            let result = await Self.result(of: reading)
            if isConnected { backoff.succeeded() }
            isConnected = false
            if case .failure(let error) = result { record(error) }
            try await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
        }
    }

    private func uploadEntries(_ workTicks: AsyncStream<Void>) async throws {
        for await _ in workTicks {
            var backoff = Self.backoff
            while isConnected, !database.queue.isEmpty || database.needsWriteCheckpoint {
                let uploading = Task { try await self.uploadNext() }
                upload = uploading
                switch await Self.result(of: uploading) {
                case .success: backoff.succeeded()
                case .failure(let error):
                    record(error)
                    try await Task.sleep(for: backoff.failed(random: .random(in: 0..<1)))
                }
            }
        }
        try Task.checkCancellation()
    }

    private static func result(of task: Task<Void, any Error>) async -> Result<Void, any Error> {
        await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
    }

    private func record(_ error: any Error) {
        switch error {
        case Fault.cut: counts.cuts += 1
        case Fault.kill:
            counts.kills += 1
            isConnected = false
            isAligned = false
            stream?.cancel()
            upload?.cancel()
        case let refusal as GatewayClient.UnexpectedResponse:
            if refusal.status == 401 { token = nil }
            if refusal.status == 400 || refusal.status == 409 { violate("\(refusal)") }
        case is BucketModel.StreamError: violate("line: \(error)")
        default: break
        }
    }

    private func violate(_ text: String) {
        if violations.count < Self.violationCountMax { violations.append("\(person.email): \(text)") }
    }

    /// Fails at random.
    private func injectFault(cutPercent: Int = 0, killPercent: Int) throws {
        if random.happens(killPercent) { throw Fault.kill }
        if random.happens(cutPercent) { throw Fault.cut }
    }

    private func currentToken() async throws -> String {
        if let token { return token }
        let fresh = try await tokens.tokens(for: [person])
        token = fresh.first
        return fresh.first ?? ""
    }

    // MARK: The stream

    private func readStream() async throws {
        let token = try await currentToken()
        let lines = try await gateway.buckets(database.syncRequest(), token: token)
        let completedCount = database.model.completedCount
        for try await line in lines {
            // A busy device stores lines late.
            if random.happens(10) { try await Task.sleep(for: .milliseconds(.random(in: 1...300, using: &random))) }
            // A read can return after the device went offline.
            try Task.checkCancellation()
            let isDownload = database.model.completedCount == completedCount
            try injectFault(cutPercent: isDownload ? 5 : 1, killPercent: isDownload ? 2 : 1)
            let count = database.model.completedCount
            try database.apply(line)
            if database.model.completedCount > count { checkPosition() }
            opened.formUnion(database.announced)
            if let name = database.model.unannounced.first { violate("data of \(name) before its announcement") }
            if !isConnected {
                isConnected = true
                workTick?.yield()
            }
            if let seconds = database.model.tokenExpiresIn, seconds <= 30 {
                self.token = nil
                return
            }
        }
    }

    /// A checkpoint with the awaited number must contain the accepted entries.
    private func checkPosition() {
        let position = database.model.position
        if position < neededPosition { violate("a checkpoint at \(position) lacks position \(neededPosition)") }
    }

    // MARK: Uploads

    /// Performs the next request of the SDK's upload loop. A response is lost if the device is killed before its result
    /// is stored.
    private func uploadNext() async throws {
        let token = try await currentToken()
        if !isAligned {
            let (_, expected) = try await gateway.upload(database.uploadRequest(countMax: 0).body, token: token)
            try Task.checkCancellation()
            if expected > database.sent + 1 { violate("the server expects \(expected) after \(database.sent)") }
            isAligned = true
        }
        guard database.queue.isEmpty else { return try await uploadBatch(token) }
        let last = database.last
        let number = try await gateway.writeCheckpoint(of: database.clientID, token: token)
        try Task.checkCancellation()
        try injectFault(killPercent: 3)
        // An entry that was written meanwhile may not be in that checkpoint.
        guard database.last == last else { return }
        if number <= lastNumber { violate("write checkpoint \(number) after \(lastNumber)") }
        lastNumber = number
        counts.checkpoints += 1
        neededPosition = acceptedPosition
        let count = database.model.completedCount
        database.expect(writeCheckpoint: number)
        if database.model.completedCount > count { checkPosition() }
    }

    private func uploadBatch(_ token: String) async throws {
        let request = database.uploadRequest(countMax: .random(in: 1...Self.batchCountMax, using: &random))
        try injectFault(killPercent: 2)
        let (results, expected) = try await gateway.upload(request.body, token: token)
        try Task.checkCancellation()
        try injectFault(killPercent: 4)
        let numbers = request.entries.map(\.number)
        // A repeat after a kill can have fewer entries than the request whose response was lost.
        let expectedRange = (numbers.last ?? 0) + 1...database.sent + 1
        guard results.map(\.number) == numbers, expectedRange.contains(expected) else {
            violate("the results of \(numbers) are \(results), and \(expected) is expected")
            throw Fault.cut
        }
        for (entry, result) in zip(request.entries, results) {
            if case .rejected = result.outcome { counts.rejections += 1 }
            if case .accepted(let position) = result.outcome { acceptedPosition = max(acceptedPosition, position) }
            if result.outcome == .expired { violate("the result of \(entry.number) has expired") }
            answers.append(
                AnsweredMutation(realm: entry.realm, mutation: entry.mutation, outcome: result.outcome))
        }
        counts.uploads += 1
        database.complete(request.entries)
    }
}

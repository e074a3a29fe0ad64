import Access
import Essentials
import Model
import ObjectStore
import Postgres

/// Commits one environment's mutations in groups: while a transaction runs, arriving requests are queued for the next.
actor GroupCommit {
    /// Maximum numbers of requests and mutations in one transaction.
    private static let requestCountMax = 256
    private static let mutationCountMax = 1_000

    private struct Waiting {
        let request: MutationRequest
        let continuation: CheckedContinuation<MutationBatch.Outcome, any Error>
    }

    private let batch: MutationBatch
    private let pools: CommitPools
    private let waitingMax: Int
    private let committed: @Sendable () -> Void
    private var waiting: [Waiting] = []
    private var isRunning = false
    /// Whether the last attempt failed because another transaction held a lock of this environment.
    private var isLocked = false

    /// - Parameter committed: Called after each transaction.
    init(_ batch: MutationBatch, pools: CommitPools, waitingMax: Int, committed: @escaping @Sendable () -> Void) {
        self.batch = batch
        self.pools = pools
        self.waitingMax = waitingMax
        self.committed = committed
    }

    /// - Throws: `Problem` 503 if the queue is full, or the transaction's error.
    func submit(_ request: MutationRequest) async throws -> MutationBatch.Outcome {
        guard waiting.count < waitingMax else { throw Problems.busy }
        return try await withCheckedThrowingContinuation { continuation in
            waiting.append(Waiting(request: request, continuation: continuation))
            if isRunning { return }
            isRunning = true
            Task { await run() }
        }
    }

    private func run() async {
        while !waiting.isEmpty {
            let taken = take()
            let requests = taken.map(\.request)
            let spans = requests.compactMap { SpanRecorder.process.begin($0.traceparent) }
            do {
                let outcomes = try await commit(requests)
                for span in spans {
                    SpanRecorder.process.end(
                        span, .commit(environment: batch.store.environment.rawValue, count: requests.count))
                }
                committed()
                for (item, outcome) in zip(taken, outcomes) { item.continuation.resume(returning: outcome) }
            } catch {
                for item in taken { item.continuation.resume(throwing: error) }
            }
        }
        isRunning = false
    }

    /// Commits the requests, and retries while another transaction holds a lock; see `CommitPools`.
    private func commit(_ requests: [MutationRequest]) async throws -> [MutationBatch.Outcome] {
        let end = ContinuousClock.now + pools.lockedMax
        while true {
            do {
                let pool = isLocked ? pools.locked : pools.free
                let outcomes = try await pool.run { [batch] connection in try batch.run(requests, on: &connection) }
                isLocked = false
                return outcomes
            } catch let error as PostgresError where error.isLocked {
                isLocked = true
                if ContinuousClock.now >= end { throw error }
            }
        }
    }

    /// Removes the next transaction's requests from the queue: at most one per client, since a later one depends on the
    /// earlier one's outcome, and none that writes what another caller's request writes or depends on.
    private func take() -> [Waiting] {
        var taken: [Waiting] = []
        var rest: [Waiting] = []
        var clients: Set<ClientKey> = []
        var footprints = Footprints()
        var mutationCount = 0
        for item in waiting {
            let isFirst = clients.insert(item.request.client).inserted
            let fits =
                taken.isEmpty
                || taken.count < Self.requestCountMax
                    && mutationCount + item.request.mutations.count <= Self.mutationCountMax
            if isFirst && fits && footprints.admit(item.request) {
                taken.append(item)
                mutationCount += item.request.mutations.count
            } else {
                rest.append(item)
            }
        }
        waiting = rest
        return taken
    }
}

/// The connections that commit mutations. An environment with a lock conflict waits on a connection that only such
/// environments use, for a short time per attempt, so that other environments are not blocked.
struct CommitPools: Sendable {
    private static let lockMax = Duration.milliseconds(250)

    let free: Pool
    let locked: Pool
    /// Maximum time that a transaction is retried.
    let lockedMax: Duration

    init(_ database: String, _ limits: GatewayLimits) throws(PostgresError) {
        let waits = Limits(lockMax: Self.lockMax)
        free = try Pool(database, size: limits.commitPoolSize, limits: waits, check: Lineage.check)
        locked = try Pool(database, size: 1, limits: waits, check: Lineage.check)
        lockedMax = limits.lockedMax
    }

    func stop() {
        free.stop()
        locked.stop()
    }
}

/// The read and write sets of a transaction's requests.
///
/// In `/common`, several people can write their own objects in one transaction. A request that writes other objects
/// there, on which permissions depend, shares no transaction with callers whose permissions or references depend on
/// them.
struct Footprints {
    private var writers: [RealmPath: Int32] = [:]
    /// Callers whose permissions or references are read from `/common`, or who write their own objects there.
    private var readers: Set<Int32> = []

    /// Adds a request, unless it conflicts with another caller's.
    mutating func admit(_ request: MutationRequest) -> Bool {
        let caller = request.caller.id
        var realms = request.realms
        if realms.contains(.common), request.writesOnlyOwnInCommon { realms.remove(.common) }
        let isReader = request.readsCommon
        guard realms.allSatisfy({ writers[$0] ?? caller == caller }) else { return false }
        if isReader, let writer = writers[.common], writer != caller { return false }
        if realms.contains(.common), readers.contains(where: { $0 != caller }) { return false }
        for realm in realms { writers[realm] = caller }
        if isReader { readers.insert(caller) }
        return true
    }
}

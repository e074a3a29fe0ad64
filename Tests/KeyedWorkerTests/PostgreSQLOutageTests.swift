import Essentials
import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import KeyedWorker

/// A worker while PostgreSQL is unavailable.
@Suite(.ownThreads) struct PostgreSQLOutageTests {
    private let person = UUID()

    /// librdkafka and ends of calls wake the loop continuously.
    @Test func wakeupsDoNotShortenTheBackoff() async throws {
        try await withUnavailableWorker { worker, attempts, _ in
            let before = attempts.count
            let end = ContinuousClock.now + .seconds(3)
            while ContinuousClock.now < end {
                worker.wakeup.signal()
                let problem = try worker.step()
                #expect(problem?.contains("57P03") == true)
            }
            // The maximum backoff doubles from 0.1 s: a few attempts, some more if the random factors are low.
            let count = attempts.count - before
            #expect(count <= 20)
        }
    }

    @Test func workerResumesWhenPostgreSQLRecovers() async throws {
        try await withUnavailableWorker { worker, attempts, _ in
            attempts.isUnavailable = false
            try wait("the event is decided, and others are taken") {
                try worker.step() == nil && worker.isIdle && !worker.isPaused
            }
        }
    }

    /// Unrecorded work is left to the next worker: PostgreSQL may be unavailable for long.
    @Test func stoppingWorkerDoesNotWaitForPostgreSQL() async throws {
        try await withUnavailableWorker { worker, attempts, _ in
            let before = attempts.count
            var rounds = 0
            try worker.run {
                rounds += 1
                return rounds > 2
            } report: { _ in
            }
            let (count, isIdle) = (attempts.count - before, worker.isIdle)
            #expect(!isIdle && (1...3).contains(count))
        }
    }

    /// A new worker, created by the runtime, reads the undelivered messages.
    @Test func undeliveredPartitionEndsTheWorker() async throws {
        try await withUnavailableWorker { worker, attempts, flow in
            attempts.isUnavailable = false
            try wait("the event is decided") { try worker.step() == nil && worker.isIdle && !worker.isPaused }
            worker.reader.deliveryInterval = .milliseconds(20)
            worker.reader.nextDeliveryCheck = .now
            let partition = try #require(worker.consumer.nextOffsets.first { $0.value == 1 }).key
            try worker.consumer.pauseUnknowingly()
            try flow.put(try flow.key(.users, .realms, person), #"{"userId": "ben"}"#)
            try flow.publishAll()
            let error = #expect(throws: KafkaError.self) { try wait("its end") { try worker.step() != nil } }
            #expect(error?.description.contains("\(partition) is stalled") == true, "\(error as Any)")
        }
    }

    /// Runs a worker with an event that it failed to decide once.
    private func withUnavailableWorker(
        _ body: @Sendable (inout Worker<UnavailableHandler>, Attempts, inout Flow) throws -> Void
    ) async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let attempts = Attempts()
            let configuration = WorkerConfiguration(
                group: "group", topics: [Topics.realm.name], brokers: cluster.address, properties: fastGroup,
                conninfo: flow.conninfo)
            try flow.put(try flow.key(.users, .realms, person), #"{"userId": "ana"}"#)
            try flow.publishAll()
            var worker = try Worker(
                UnavailableHandler(attempts: attempts), at: configuration, limits: WorkerLimits(), logger: quiet)
            try wait("a failure") { try worker.step()?.contains("57P03") == true }
            try body(&worker, attempts, &flow)
        }
    }
}

/// The number of decisions, and whether they fail.
private final class Attempts: Sendable {
    private let calls = Atomic<Int>(0)
    private let fails = Atomic<Bool>(true)

    var count: Int { calls.load(ordering: .relaxed) }
    func add() { calls.add(1, ordering: .relaxed) }
    var isUnavailable: Bool {
        get { fails.load(ordering: .relaxed) }
        set { fails.store(newValue, ordering: .relaxed) }
    }
}

/// Fails as PostgreSQL does while it starts; otherwise finishes each key.
private struct UnavailableHandler: Handler {
    let attempts: Attempts

    mutating func decide(
        _ inputs: [WorkItem<Never>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Never>] {
        attempts.add()
        if attempts.isUnavailable {
            throw PostgresError(sqlState: "57P03", message: "the database system is starting up")
        }
        return inputs.map { _ in .finished }
    }
}

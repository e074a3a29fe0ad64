import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import KeyedWorker

/// A worker while its PostgreSQL cannot do what it is asked.
@Suite(.ownThreads) struct WaitingTests {
    private let person = UUID()

    /// librdkafka, and answers of calls, wake the loop all the time.
    @Test func whateverWakesTheLoopDoesNotShortenItsWait() async throws {
        try await withAwayWorker { worker, attempts, _ in
            let before = attempts.count
            let end = ContinuousClock.now + .seconds(3)
            while ContinuousClock.now < end {
                worker.wakeup.signal()
                let problem = try worker.step()
                #expect(problem?.contains("57P03") == true)
            }
            // The bound of the wait doubles from 0.1 s on: a few attempts, some more when the draws are low.
            let count = attempts.count - before
            #expect(count <= 20)
        }
    }

    @Test func itIsTriedAgainAndGoesOnWhenItIsThere() async throws {
        try await withAwayWorker { worker, attempts, _ in
            attempts.isAway = false
            try wait("the event is decided, and others are taken") {
                try worker.step() == nil && worker.isIdle && !worker.isPaused
            }
        }
    }

    /// What is held then is left to the next worker: PostgreSQL may be away for long.
    @Test func aStopDoesNotWaitForIt() async throws {
        try await withAwayWorker { worker, attempts, _ in
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

    /// A new worker, made by who runs it, reads what this one does not get.
    @Test func aWorkerOfWhichAPartitionIsNotDeliveredEnds() async throws {
        try await withAwayWorker { worker, attempts, flow in
            attempts.isAway = false
            try wait("the event is decided") { try worker.step() == nil && worker.isIdle && !worker.isPaused }
            worker.reader.deliveryInterval = .milliseconds(20)
            worker.reader.nextDeliveryCheck = .now
            let partition = try #require(worker.consumer.positions.first { $0.next == 1 }).partition
            try worker.consumer.pauseUnknowingly(partition)
            try flow.put(try flow.key(.users, .realms, person), #"{"userId": "ben"}"#)
            try flow.publishAll()
            let error = #expect(throws: KafkaError.self) { try wait("its end") { try worker.step() != nil } }
            #expect(error?.description.contains("\(partition) delivers nothing") == true, "\(error as Any)")
        }
    }

    /// Lends a worker with an event at hand that it could not decide once.
    private func withAwayWorker(
        _ body: @Sendable (inout Worker<AwayHandler>, Attempts, inout Flow) throws -> Void
    ) async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let attempts = Attempts()
            let place = WorkerPlace(
                group: "group", topics: [Topics.realm.name], brokers: cluster.address, properties: fastGroup,
                conninfo: flow.conninfo)
            try flow.put(try flow.key(.users, .realms, person), #"{"userId": "ana"}"#)
            try flow.publishAll()
            var worker = try Worker(
                AwayHandler(attempts: attempts), at: place, limits: WorkerLimits(), logger: quiet)
            try wait("a failure") { try worker.step()?.contains("57P03") == true }
            try body(&worker, attempts, &flow)
        }
    }
}

/// How often a handler was asked, and whether it fails.
private final class Attempts: Sendable {
    private let asked = Atomic<Int>(0)
    private let fails = Atomic<Bool>(true)

    var count: Int { asked.load(ordering: .relaxed) }
    func add() { asked.add(1, ordering: .relaxed) }
    var isAway: Bool {
        get { fails.load(ordering: .relaxed) }
        set { fails.store(newValue, ordering: .relaxed) }
    }
}

/// Fails as PostgreSQL does while it starts, and is done with each key otherwise.
private struct AwayHandler: Handler {
    let attempts: Attempts

    mutating func decide(
        _ inputs: [WorkItem<Never>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Never>] {
        attempts.add()
        if attempts.isAway { throw PostgresError(sqlState: "57P03", message: "the database system is starting up") }
        return inputs.map { _ in .finished }
    }
}

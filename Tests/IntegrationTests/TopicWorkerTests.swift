import Essentials
import Foundation
import Integration
import Kafka
import Logging
import Model
import Synchronization
import TestSupport
import Testing

/// The worker against a broker of the real protocol.
@Suite(.ownThreads) struct TopicWorkerTests {
    private struct Failure: Error {}

    private func worker(
        _ cluster: MockCluster, logger: Logger = LogCapture().logger, properties: [String: String] = [:],
        handler: @escaping @Sendable (TopicMessage) async throws -> Void
    ) -> TopicWorker {
        let fast = [
            "session.timeout.ms": "4000", "heartbeat.interval.ms": "100", "auto.commit.interval.ms": "100",
            "fetch.wait.max.ms": "10",
        ]
        let settings = KafkaSettings(brokers: cluster.address, properties: fast.merging(properties) { $1 })
        return TopicWorker(group: "g", topics: ["t"], settings: settings, logger: logger, handler: handler)
    }

    /// Sends messages of an object; a value of `nil` is a tombstone, and position 0 stands for a missing header.
    private func send(_ id: UUID, _ messages: [(position: Int, value: String?)], to cluster: MockCluster) throws {
        var producer = try Producer(brokers: cluster.address)
        for (position, value) in messages {
            var headers = [("ce_subject", Array("/users/ana@example.com/Inspection/\(id.text)".utf8))]
            if position > 0 { headers.append(("fieldpost-position", Array("\(position)".utf8))) }
            try producer.send("t", key: Array(id.text.utf8), value: value.map { Array($0.utf8) }, headers: headers)
        }
        let isFlushed = producer.flush(waitMax: patienceMax)
        #expect(isFlushed)
    }

    /// Runs a worker while `body` runs; then it ends cleanly.
    private func running(_ worker: TopicWorker, _ body: () async throws -> Void) async throws {
        let task = Task { try await worker.run() }
        do {
            try await body()
        } catch {
            task.cancel()
            throw error
        }
        task.cancel()
        try await task.value
    }

    private func wait(_ condition: () -> Bool) async throws {
        let end = ContinuousClock.now + patienceMax
        while !condition() {
            try #require(ContinuousClock.now < end, "timeout")
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    @Test func messagesOfAnObjectAreHandledInOrder() async throws {
        let cluster = try MockCluster(topics: ["t": 3])
        let ids = (0..<20).map { _ in UUID() }
        for id in ids { try send(id, (1...5).map { ($0, #"{"a":1}"#) } + [(6, nil)], to: cluster) }
        let handled = Mutex<[UUID: [Int64]]>([:])
        let current = Atomic(0)
        let most = Atomic(0)
        var worker = worker(cluster) { message in
            most.max(current.add(1, ordering: .relaxed).newValue, ordering: .relaxed)
            try await Task.sleep(for: .milliseconds(2))
            current.subtract(1, ordering: .relaxed)
            #expect((message.fields == nil) == (message.position == 6))
            #expect(message.fields.map { String(decoding: $0, as: UTF8.self) } ?? #"{"a":1}"# == #"{"a":1}"#)
            #expect(message.subject.realm.description == "/users/ana@example.com")
            #expect(message.headers["fieldpost-position"] == "\(message.position)" && message.topic == "t")
            handled.withLock { $0[message.subject.id, default: []].append(message.position) }
        }
        worker.concurrencyMax = 3
        try await running(worker) {
            try await wait { handled.withLock { $0.values.reduce(0) { $0 + $1.count } } >= 120 }
        }
        let expected = Dictionary(uniqueKeysWithValues: ids.map { ($0, [1, 2, 3, 4, 5, 6] as [Int64]) })
        #expect(handled.withLock { $0 } == expected)
        #expect(most.load(ordering: .relaxed) == 3)
    }

    /// A handler that throws gets the same message again; its later message waits. Other objects' do not, although more
    /// objects fail than messages are handled concurrently.
    @Test func failedMessageIsRetriedBeforeItsSuccessor() async throws {
        let cluster = try MockCluster(topics: ["t": 1])
        let failing = (0..<6).map { _ in UUID() }
        let other = UUID()
        for id in failing { try send(id, [(1, "{}"), (2, "{}")], to: cluster) }
        try send(other, [(1, "{}")], to: cluster)
        let log = LogCapture()
        let handled = Mutex<[UUID: [Int64]]>([:])
        let isFailing = Atomic(true)
        let worker = worker(cluster, logger: log.logger) { message in
            if message.subject.id != other, isFailing.load(ordering: .relaxed) {
                #expect(message.position == 1)
                throw Failure()
            }
            handled.withLock { $0[message.subject.id, default: []].append(message.position) }
        }
        try await running(worker) {
            try await wait { log.errorEvents.count >= 2 * failing.count && handled.withLock { $0[other] } == [1] }
            #expect(handled.withLock(\.count) == 1)
            isFailing.store(false, ordering: .relaxed)
            try await wait { handled.withLock { $0.values.reduce(0) { $0 + $1.count } } == 13 }
        }
        #expect(handled.withLock { $0.filter { $0.key != other }.values.allSatisfy { $0 == [1, 2] } })
        #expect(log.errorEvents.allSatisfy { $0.message == "message failed, retrying" }, "\(log.errors)")
        #expect(log.errorEvents[0].metadata["reason"] == "Failure()")
    }

    /// A worker that ends in the middle of a message has committed those before it, and the next one gets the rest.
    @Test func unhandledMessageIsRedeliveredToTheNextWorker() async throws {
        let cluster = try MockCluster(topics: ["t": 1])
        let id = UUID()
        try send(id, [(1, "{}"), (2, "{}"), (3, "{}")], to: cluster)
        let isReached = Atomic(false)
        let first = worker(cluster) { message in
            guard message.position == 2 else { return }
            isReached.store(true, ordering: .relaxed)
            try await Task.sleep(for: .seconds(1_000))
        }
        try await running(first) { try await wait { isReached.load(ordering: .relaxed) } }
        let handled = Mutex<[Int64]>([])
        try await running(worker(cluster) { message in handled.withLock { $0.append(message.position) } }) {
            try await wait { handled.withLock { $0.last == 3 } }
        }
        #expect(handled.withLock { $0 } == [2, 3])
    }

    /// Messages that were handled after a failing one do not commit its offset.
    @Test func failedMessageIsRedeliveredToTheNextWorker() async throws {
        let cluster = try MockCluster(topics: ["t": 1])
        let failing = UUID()
        try send(failing, [(1, "{}")], to: cluster)
        for _ in 0..<5 { try send(UUID(), [(1, "{}")], to: cluster) }
        let count = Atomic(0)
        let first = worker(cluster) { message in
            if message.subject.id == failing { throw Failure() }
            count.add(1, ordering: .relaxed)
        }
        try await running(first) { try await wait { count.load(ordering: .relaxed) == 5 } }
        let handled = Mutex<Set<UUID>>([])
        try await running(worker(cluster) { message in handled.withLock { _ = $0.insert(message.subject.id) } }) {
            try await wait { handled.withLock { $0.contains(failing) } }
        }
    }

    /// The offsets begin again. Later messages are handled without a new program.
    @Test func emptiedBrokerIsReadFromItsBeginning() async throws {
        let cluster = try MockCluster(topics: ["t": 1], restarts: true)
        let handled = Mutex<Set<UUID>>([])
        let (before, after) = (UUID(), UUID())
        try send(before, (1...20).map { ($0, "{}") }, to: cluster)
        try await running(worker(cluster) { message in handled.withLock { _ = $0.insert(message.subject.id) } }) {
            try await wait { handled.withLock { $0.contains(before) } }
            try cluster.restartEmpty()
            try send(after, (1...3).map { ($0, "{}") }, to: cluster)
            try await wait { handled.withLock { $0.contains(after) } }
        }
    }

    @Test func unusableSettingEndsTheWorker() async throws {
        let cluster = try MockCluster(topics: ["t": 1])
        var idle = worker(cluster) { _ in }
        idle.concurrencyMax = 0
        let invalid = IntegrationError.invalidSetting("concurrencyMax is 0: at least 1")
        await #expect(throws: invalid) { try await idle.run() }
        await #expect(throws: IntegrationError.self) {
            try await worker(cluster, properties: ["enable.auto.commit": "false"]) { _ in }.run()
        }
    }

    /// A second worker gets partitions: the calls of the first one for their messages are cancelled, and it handles
    /// them.
    @Test func messagesFollowARebalance() async throws {
        let cluster = try MockCluster(topics: ["t": 4])
        let ids = (0..<16).map { _ in UUID() }
        for id in ids { try send(id, [(1, "{}")], to: cluster) }
        let started = Mutex<Set<UUID>>([])
        let cancelled = Mutex<Set<UUID>>([])
        let handled = Mutex<Set<UUID>>([])
        var first = worker(cluster) { message in
            started.withLock { _ = $0.insert(message.subject.id) }
            defer { cancelled.withLock { _ = $0.insert(message.subject.id) } }
            try await Task.sleep(for: .seconds(1_000))
        }
        first.concurrencyMax = 100
        let second = worker(cluster) { message in handled.withLock { _ = $0.insert(message.subject.id) } }
        try await running(first) {
            try await wait { started.withLock(\.count) == ids.count }
            try await running(second) {
                try await wait {
                    !handled.withLock(\.isEmpty) && handled.withLock { $0 } == cancelled.withLock { $0 }
                }
            }
        }
    }

    @Test func foreignMessageIsLoggedAndSkipped() async throws {
        let cluster = try MockCluster(topics: ["t": 1])
        try send(UUID(), [(0, "{}"), (5, "{}")], to: cluster)
        let log = LogCapture()
        let handled = Atomic(0)
        try await running(worker(cluster, logger: log.logger) { _ in handled.add(1, ordering: .relaxed) }) {
            try await wait { handled.load(ordering: .relaxed) == 1 }
        }
        #expect(log.errors == ["message without Fieldpost's headers skipped offset=0 partition=t/0"])
    }

    /// More messages than the worker buffers.
    @Test func deliveryIsPausedAndResumed() async throws {
        let cluster = try MockCluster(topics: ["t": 2])
        let ids = (0..<4).map { _ in UUID() }
        for id in ids { try send(id, (1...1_000).map { ($0, "{}") }, to: cluster) }
        let handled = Mutex<[UUID: Set<Int64>]>([:])
        let isOpen = Atomic(false)
        let log = LogCapture(level: .debug)
        let worker = worker(cluster, logger: log.logger) { message in
            while !isOpen.load(ordering: .relaxed) { try await Task.sleep(for: .milliseconds(50)) }
            handled.withLock { _ = $0[message.subject.id, default: []].insert(message.position) }
        }
        try await running(worker) {
            try await wait { log.errorEvents.contains { $0.message == "delivery paused" } }
            isOpen.store(true, ordering: .relaxed)
            try await wait { handled.withLock { $0.values.reduce(0) { $0 + $1.count } } == 4_000 }
        }
    }

    @Test func rejectedPropertyEndsTheWorker() async throws {
        let cluster = try MockCluster(topics: ["t": 1])
        await #expect {
            try await worker(cluster, properties: ["group.id": "other"]) { _ in }.run()
        } throws: { error in
            "\(error)".contains(#"property "group.id" must be "g""#)
        }
    }
}

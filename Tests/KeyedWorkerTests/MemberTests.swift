import HTTPClient
import Kafka
import Model
import TestSupport
import Testing

@testable import KeyedWorker

@Suite(.ownThreads) struct MemberTests {
    /// Two workers with one identity would fence each other without end.
    @Test func workersOfOneProcessAreSeparateMembers() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            let flow = try Flow(cluster)
            let configuration = WorkerConfiguration(
                group: "group", topics: [Topics.realm.name], brokers: cluster.address,
                properties: fastGroup.merging(["group.instance.id": "host"]) { $1 }, conninfo: flow.conninfo)
            let (handler, limits) = (RecordingHandler(seen: DecidedKeys()), WorkerLimits())
            var first = try Worker(handler, at: configuration.member(0), limits: limits, logger: quiet)
            var second = try Worker(handler, at: configuration.member(1), limits: limits, logger: quiet)
            try wait("both have partitions") {
                _ = try first.step()
                _ = try second.step()
                let (one, other) = (first.consumer.assignment, second.consumer.assignment)
                return !one.isEmpty && one.count + other.count == Topics.realm.partitions && one.isDisjoint(with: other)
                    && !other.isEmpty
            }
            #expect(configuration.member(1).properties["group.instance.id"] == "host-1")
        }
    }
}

extension MemberTests {
    /// A coordinator that was frozen leaves a JoinGroup unanswered. With the properties of services the worker retries;
    /// with librdkafka's default it would wait longer than this test.
    @Test func unansweredJoinIsRetried() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            let flow = try Flow(cluster)
            let configuration = WorkerConfiguration(
                group: "group", topics: [Topics.realm.name], brokers: cluster.address, properties: [:],
                conninfo: flow.conninfo)
            cluster.delay(.joinGroup, milliseconds: 3_600_000)
            var worker = try Worker(
                RecordingHandler(seen: DecidedKeys()), at: configuration, limits: WorkerLimits(), logger: quiet)
            try wait("it has partitions") {
                _ = try worker.step()
                return !worker.consumer.assignment.isEmpty
            }
        }
    }

    @Test func workerIsNotReadyWithoutItsTopic() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            cluster.spoil(topic: Topics.realm.name, with: 29)  // TOPIC_AUTHORIZATION_FAILED
            let flow = try Flow(cluster)
            let log = LogCapture()
            let configuration = WorkerConfiguration(
                group: "group", topics: [Topics.realm.name], brokers: cluster.address,
                properties: fastGroup.merging(["topic.metadata.refresh.interval.ms": "200"]) { $1 },
                conninfo: flow.conninfo)
            var worker = try Worker(
                RecordingHandler(seen: DecidedKeys()), at: configuration, limits: WorkerLimits(), logger: log.logger)
            try wait("a reason") { try worker.step()?.contains("grant this client access to the topic") == true }
            for _ in 0..<20 { _ = try worker.step() }
            #expect(log.errors.count == 1)
            cluster.spoil(topic: Topics.realm.name, with: 0)
            try wait("it is ready") { try worker.step() == nil && !worker.consumer.assignment.isEmpty }
        }
    }
}

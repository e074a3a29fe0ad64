import FoundationEssentials
import Kafka
import Logging
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

/// A transaction holds the lock of one environment's counter: other environments are not affected.
@Suite(.ownThreads) struct LockedEnvironmentTests {
    private let tests = CallingTests()

    /// A worker has events of both, and calls of the locked one whose responses arrive while it is locked.
    @Test func workerContinuesWithOtherEnvironments() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let other = try addEnvironment("other", to: &flow)
            let calls = Calls()
            calls.stuckEnvironments = [other]
            var limits = WorkerLimits()
            limits.dueInterval = .milliseconds(20)
            var worker = try tests.makeWorker(flow, calls, limits)
            try tests.add(2, to: &flow, other)
            try tests.publish(&flow, &worker, "calls are in flight") { flow in
                try tests.state("called", other, &flow) == 2
            }
            for environment in [flow.environment, other] { try tests.add(3, to: &flow, environment) }
            try whileLocked(other, at: flow.conninfo) {
                calls.stuckEnvironments = []
                try tests.publish(&flow, &worker, "one is done, the other deferred") { flow in
                    try tests.state("done", flow.environment, &flow) == 3 && tests.parked(other, &flow).count == 3
                }
                try tests.add(3, to: &flow, flow.environment)
                try tests.publish(&flow, &worker, "more of it is done") { flow in
                    try tests.state("done", flow.environment, &flow) == 6
                }
                // The calls were made; their results are not lost.
                let called = try tests.state("called", other, &flow)
                #expect(called == 2 && worker.queuedCount == 2)
                let counted = try flow.connection.run("SELECT FROM pipeline.parked WHERE is_dead OR attempts > 0").count
                #expect(counted == 0)
            }
            try wait("the other one drains") {
                _ = try worker.step()
                return try tests.state("done", other, &flow) == 5 && tests.parked(other, &flow).isEmpty
            }
        }
    }

    /// Results that cannot be stored are redelivered to the next worker.
    @Test func stopDoesNotWaitForTheLock() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            let flow = try Flow(cluster)
            let calls = Calls()
            calls.isHeld = true
            var worker = try tests.makeWorker(flow, calls)
            tests.hold(UUID(), flow.environment, &worker)
            try wait("the call is in flight") {
                _ = try worker.step()
                return calls.made.count == 1
            }
            try whileLocked(flow.environment, at: flow.conninfo) {
                calls.isHeld = false
                try worker.run(isStopping: { true }, report: { _ in })
                #expect(worker.queuedCount == 1 && !worker.isIdle)
            }
        }
    }

    /// The relay publishes and compacts; the locked environment is compacted later.
    @Test func relayContinuesWithOtherEnvironments() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let (locked, other) = (flow.environment, try addEnvironment("other", to: &flow))
            for environment in [locked, other] { try tests.add(3, to: &flow, environment) }
            try flow.connection.run("UPDATE store.change SET changed_at = now() - interval '1 hour'")
            var relay = try flow.makeRelay()
            func changes(_ environment: EnvironmentID) throws -> Int {
                try flow.connection.run("SELECT FROM realm.change WHERE environment_id = \(environment.rawValue)").count
            }
            func compact(until isDone: () throws -> Bool) throws {
                try wait("compaction") {
                    _ = try relay.step(waitMax: .milliseconds(5))
                    try relay.compact(keep: .seconds(60), interval: .milliseconds(1))
                    return try isDone()
                }
            }
            try whileLocked(locked, at: flow.conninfo) {
                try compact { try changes(other) == 0 }
                let left = try changes(locked)
                let messages = try flow.read(Topics.realm, countMin: 6)
                #expect(left == 3 && messages.count == 6)
            }
            try compact { try changes(locked) == 0 }
        }
    }

    private func addEnvironment(_ name: String, to flow: inout Flow) throws -> EnvironmentID {
        let rows = try flow.connection.run("INSERT INTO realm.environment (name) VALUES (\(name)) RETURNING id")
        return EnvironmentID(rawValue: try rows[0].value(0))
    }
}

import FoundationEssentials
import Kafka
import Model
import Postgres
import TestSupport
import Testing

@testable import Pipeline

extension CallingTests {
    /// Two keys are too few to open the circuit. Their failures count only once the back end answers others.
    @Test func fewKeysDoNotEndDeadWhileNobodyIsAnswered() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let calls = Calls()
            var limits = WorkerLimits()
            limits.attemptsMax = 6
            limits.dueInterval = .milliseconds(5)
            var worker = try makeWorker(flow, calls, limits)
            let ids = [UUID(), UUID()]
            calls.away = Set(ids)
            try wait("it has its partitions") {
                _ = try worker.step()
                return !worker.consumer.assignment.isEmpty
            }
            for id in ids { hold(id, flow.environment, &worker) }
            try wait("they are tried far more often than a key may be") {
                _ = try worker.step()
                return calls.made.count >= 40
            }
            let attempts = try attempts(&flow)
            #expect(attempts == [3, 3])
            hold(UUID(), flow.environment, &worker)
            try wait("they are given up when another key is answered") {
                _ = try worker.step()
                return try flow.connection.run("SELECT 1 FROM pipeline.parked WHERE is_dead").count == 2
            }
            #expect(try self.attempts(&flow) == [6, 6])
        }
    }

    /// Calls of one environment do not end, and more keys of it come than the worker may hold: another one's go on, and
    /// the first one's are put aside without counting. When its calls end all of them are done.
    @Test func anEnvironmentWhoseCallsDoNotEndHoldsUpNoOther() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let rows = try flow.connection.run("INSERT INTO realm.environment (name) VALUES ('other') RETURNING id")
            let other = EnvironmentID(rawValue: try rows[0].value(0))
            let calls = Calls()
            calls.heldEnvironments = [flow.environment]
            var limits = WorkerLimits()
            (limits.inFlightMax, limits.heldMax, limits.batchCountMax) = (2, 16, 8)
            (limits.turnMax, limits.dueInterval) = (.milliseconds(50), .milliseconds(10))
            var worker = try makeWorker(flow, calls, limits)
            let hung = flow.environment
            try add(24, to: &flow, hung)
            try add(5, to: &flow, other)
            try publish(&flow, &worker, "the other one is done") { flow in try state("done", other, &flow) == 5 }
            #expect(try state("done", hung, &flow) == 0)
            let attempts = try attempts(&flow)
            #expect(attempts.allSatisfy { $0 == 0 })
            let underWay = worker.calls.underWayCount
            #expect(underWay == 2)
            calls.heldEnvironments = []
            try wait("the rest is done") {
                _ = try worker.step()
                return try state("done", hung, &flow) == 24
            }
        }
    }

    /// What was begun is waited for and recorded; what only waits for its turn is left to the next worker.
    @Test func aStopBeginsNoFurtherCalls() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            let flow = try Flow(cluster)
            let calls = Calls()
            calls.isHeld = true
            var limits = WorkerLimits()
            limits.inFlightMax = 1
            var worker = try makeWorker(flow, calls, limits)
            for _ in 0..<3 { hold(UUID(), flow.environment, &worker) }
            try wait("one is called, the others wait") {
                _ = try worker.step()
                return calls.made.count == 1
            }
            var rounds = 0
            try worker.run {
                true
            } report: { _ in
                rounds += 1
                if rounds == 3 { calls.isHeld = false }
            }
            let isIdle = worker.isIdle
            #expect(isIdle && calls.made.count == 1)
        }
    }

    private func attempts(_ flow: inout Flow) throws -> [Int32] {
        try flow.connection.run("SELECT attempts FROM pipeline.parked ORDER BY key").map { try $0.value(0) }
    }
}

import FoundationEssentials
import Kafka
import Model
import Postgres
import TestSupport
import Testing

@testable import KeyedWorker

extension CallingTests {
    /// Two keys are too few to open the circuit. Their failures count only while calls of the same kind succeed: a
    /// system may answer queries and be unable to write.
    @Test func keysAreNotDeadLetteredDuringAnOutage() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let calls = Calls()
            var limits = WorkerLimits()
            limits.attemptsMax = 6
            limits.dueInterval = .milliseconds(5)
            // Time for which a success shows that the back end is available; here unlimited.
            limits.circuit = CircuitBreaker(waitMax: .seconds(3_600))
            var worker = try makeWorker(flow, calls, limits)
            let (ids, other) = ([UUID(), UUID()], UUID())
            calls.unavailableKeys = Set(ids)
            calls.writes = Set(ids + [other])
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
            let before = calls.made.count
            try wait("a question is answered, and they are tried on") {
                _ = try worker.step()
                return calls.made.count >= before + 40
            }
            #expect(try self.attempts(&flow) == [3, 3])
            hold(other, flow.environment, &worker)
            try wait("they are given up when another write is answered") {
                _ = try worker.step()
                return try flow.connection.run("SELECT 1 FROM pipeline.parked WHERE is_dead").count == 2
            }
            #expect(try self.attempts(&flow) == [6, 6])
        }
    }

    /// A back end that is too busy for every call is probed by one call after each pause, regardless of the number of
    /// keys. Once it responds, all keys are called.
    @Test func busyBackEndIsProbedByOneCall() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let calls = Calls()
            calls.requestedPause = .milliseconds(50)
            var limits = WorkerLimits()
            limits.dueInterval = .milliseconds(5)
            var worker = try makeWorker(flow, calls, limits)
            try wait("it has its partitions") {
                _ = try worker.step()
                return !worker.consumer.assignment.isEmpty
            }
            for _ in 0..<20 { hold(UUID(), flow.environment, &worker) }
            try wait("all wait") {
                _ = try worker.step()
                return try worker.isIdle
                    && flow.connection.run("SELECT 1 FROM pipeline.parked WHERE is_circuit OR reason = 'busy'").count
                        == 20
            }
            for _ in 0..<5 {
                let before = calls.made.count
                try wait("the circuit closes") {
                    _ = try worker.step()
                    return worker.breakers[flow.environment]?.isClosed == true
                }
                try wait("the back end requests another pause") {
                    _ = try worker.step()
                    return worker.breakers[flow.environment]?.isClosed == false
                }
                #expect(calls.made.count == before + 1)
            }
            calls.requestedPause = nil
            try wait("all calls end") {
                _ = try worker.step()
                return calls.couldCall.count == 20
            }
        }
    }

    /// A result that arrives during a requested pause is decided without a further call.
    @Test func resultHasWhetherNextCallIsAdmitted() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            let flow = try Flow(cluster)
            let calls = Calls()
            var worker = try makeWorker(flow, calls)
            let (before, after) = (UUID(), UUID())
            calls.isHeld = true
            for id in [before, after] { hold(id, flow.environment, &worker) }
            try wait("both are called for") {
                _ = try worker.step()
                return calls.made.count == 2
            }
            calls.ends = [before]
            try wait("the first is answered") {
                _ = try worker.step()
                return calls.couldCall.count == 1
            }
            var breaker = CircuitBreaker()
            _ = breaker.backOff(for: .seconds(3_600), now: .now)
            worker.schedule { $0.breakers[flow.environment] = breaker }
            calls.isHeld = false
            try wait("both are answered") {
                _ = try worker.step()
                return calls.couldCall.count == 2
            }
            #expect(calls.couldCall == [before: true, after: false])
        }
    }

    /// Some environments' calls do not end, and more of their keys arrive than the worker may hold. Another environment
    /// makes progress, and the keys are deferred without counting an attempt. When the calls end, all keys are done.
    @Test(arguments: [1, 3]) func endlessCallsDoNotDelayOtherEnvironments(hungCount: Int) async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let rows = try flow.connection.run(
                "INSERT INTO realm.environment (name) VALUES ('other'), ('second'), ('third') RETURNING id")
            let others = try rows.map { EnvironmentID(rawValue: try $0.value(0)) }
            let other = others[0]
            let hung = [flow.environment, others[1], others[2]].prefix(hungCount)
            let calls = Calls()
            calls.stuckEnvironments = Set(hung)
            var limits = WorkerLimits()
            (limits.inFlightMax, limits.keysInFlightMax, limits.batchCountMax) = (2, 32, 8)
            (limits.queueWaitMax, limits.dueInterval) = (.milliseconds(50), .milliseconds(10))
            var worker = try makeWorker(flow, calls, limits)
            for environment in hung { try add(40, to: &flow, environment) }
            try add(5, to: &flow, other)
            try publish(&flow, &worker, "the other one is done") { flow in try state("done", other, &flow) == 5 }
            for environment in hung { #expect(try state("done", environment, &flow) == 0) }
            let attempts = try attempts(&flow)
            #expect(attempts.allSatisfy { $0 == 0 })
            try wait("all their slots are used") {
                _ = try worker.step()
                return worker.callsInFlightCount == 2 * hungCount
            }
            calls.stuckEnvironments = []
            try wait("the rest is done") {
                _ = try worker.step()
                return try hung.allSatisfy { try state("done", $0, &flow) == 40 }
            }
        }
    }

    /// Messages beyond the slots of a fast back end stay in Kafka: deferring each of them would cost writes.
    @Test func messagesWaitForFastBackEnd() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let calls = Calls()
            calls.isHeld = true
            var limits = WorkerLimits()
            (limits.inFlightMax, limits.keysInFlightMax, limits.queueWaitMax) = (4, 8, .seconds(600))
            var worker = try makeWorker(flow, calls, limits)
            try add(40, to: &flow, flow.environment)
            try publish(&flow, &worker, "all slots are used") { _ in calls.made.count == 4 }
            for _ in 0..<20 { _ = try worker.step() }
            #expect(try parked(flow.environment, &flow) == [])
            calls.isHeld = false
            try publish(&flow, &worker, "all are done") { flow in try state("done", flow.environment, &flow) == 40 }
        }
    }

    /// Although each call ends soon, one environment's backlog takes long. Others do not wait for all of it.
    @Test func backlogDoesNotDelayOtherEnvironments() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let rows = try flow.connection.run("INSERT INTO realm.environment (name) VALUES ('other') RETURNING id")
            let other = EnvironmentID(rawValue: try rows[0].value(0))
            let calls = Calls()
            calls.delays = [flow.environment: .seconds(1)]
            var limits = WorkerLimits()
            (limits.inFlightMax, limits.keysInFlightMax, limits.queueWaitMax) = (2, 64, .seconds(1))
            var worker = try makeWorker(flow, calls, limits)
            try add(400, to: &flow, flow.environment)
            try add(20, to: &flow, other)
            try publish(&flow, &worker, "the other one is done") { flow in try state("done", other, &flow) == 20 }
            let count = try state("done", flow.environment, &flow)
            #expect(count < 200, "\(count) of 400 were done before")
            calls.delays = [:]
            try publish(&flow, &worker, "all are done") { flow in try state("done", flow.environment, &flow) == 400 }
        }
    }

    /// Regardless of the interval between scans for due keys.
    @Test func deferredKeysAreRetriedWhenSlotsAreFree() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let calls = Calls()
            calls.isHeld = true
            // So slow that deferred keys become due in hours, after the end of the test.
            calls.rates = CallRateLimits(perSecond: 0.001)
            var limits = WorkerLimits()
            (limits.keysInFlightMax, limits.dueInterval, limits.callerAgeMax) = (8, .seconds(36_000), .milliseconds(20))
            var worker = try makeWorker(flow, calls, limits)
            worker.schedule { $0.slotSchedule.waitMax = .seconds(36_000) }
            try add(20, to: &flow, flow.environment)
            try publish(&flow, &worker, "many are deferred") { flow in
                try parked(flow.environment, &flow).count > 10
            }
            calls.rates = CallRateLimits()
            calls.isHeld = false
            try publish(&flow, &worker, "all are done") { flow in try state("done", flow.environment, &flow) == 20 }
        }
    }

    /// Calls in flight are awaited and recorded; waiting calls are left to the next worker.
    @Test func stoppingWorkerStartsNoCalls() async throws {
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

    /// Calls stop waiting for a rate limit that was removed, although no further call is decided.
    @Test func changedRateLimitAppliesToWaitingCalls() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            let flow = try Flow(cluster)
            let calls = Calls()
            calls.rates = CallRateLimits(perSecond: 0.001)
            var limits = WorkerLimits()
            limits.callerAgeMax = .milliseconds(20)
            var worker = try makeWorker(flow, calls, limits)
            for _ in 0..<2 { hold(UUID(), flow.environment, &worker) }
            try wait("one is called, the other waits for the rate") {
                _ = try worker.step()
                return calls.made.count == 1 && worker.inFlightCount == 1
            }
            calls.rates = CallRateLimits()
            try wait("the other one is called") {
                _ = try worker.step()
                return worker.isIdle
            }
            #expect(calls.made.count == 2 && calls.decided.values.allSatisfy { $0 == 1 })
        }
    }

    private func attempts(_ flow: inout Flow) throws -> [Int32] {
        try flow.connection.run("SELECT attempts FROM pipeline.parked ORDER BY key").map { try $0.value(0) }
    }
}

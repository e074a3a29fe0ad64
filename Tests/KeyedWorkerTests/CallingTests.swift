import FoundationEssentials
import Logging
import Model
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import ChangeRelay
@testable import Kafka
@testable import KeyedWorker

/// A worker whose keys need calls.
@Suite(.ownThreads) struct CallingTests {
    /// One environment cannot be called with its settings. Its keys are deferred with the reason, without a record of a
    /// call, and the other environment is not affected.
    @Test func unavailableCallerDefersOnlyItsEnvironment() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let rows = try flow.connection.run("INSERT INTO realm.environment (name) VALUES ('other') RETURNING id")
            let other = EnvironmentID(rawValue: try rows[0].value(0))
            let calls = Calls()
            calls.unavailable = [other: "the variable OTHER is not set"]
            let logged = Logged()
            var limits = WorkerLimits()
            limits.circuit = CircuitBreaker(failuresMax: 2, waitMin: .milliseconds(200), waitMax: .milliseconds(400))
            limits.dueInterval = .milliseconds(20)
            var worker = try makeWorker(flow, calls, limits, Logger(label: "test") { _ in logged })

            for environment in [flow.environment, other] { try add(3, to: &flow, environment) }
            try publish(&flow, &worker, "the healthy one is done, the other parked") { flow in
                try state("done", flow.environment, &flow) == 3 && parked(other, &flow).count == 3
            }
            let reasons = try parked(other, &flow)
            #expect(Set(reasons) == ["the variable OTHER is not set"])
            let untouched = try state("new", other, &flow)
            #expect(untouched == 3)
            let breaker = worker.breakers[other]
            #expect(breaker?.isClosed == false)
            // It is retried without limit and without a log message.
            try untilProbed(&worker, from: try #require(breaker))
            #expect(logged.count(of: "cannot be called") == 1)
            let dead = try flow.connection.run("SELECT 1 FROM pipeline.parked WHERE is_dead OR attempts > 0")
            let deadCount = dead.count
            #expect(deadCount == 0)
            try add(2, to: &flow, flow.environment)
            try publish(&flow, &worker, "the healthy environment makes progress") { flow in
                try state("done", flow.environment, &flow) == 5
            }

            calls.unavailable = [:]
            try wait("the other one drains") {
                _ = try worker.step()
                return try state("done", other, &flow) == 3 && parked(other, &flow).isEmpty
            }
        }
    }

    /// Half of a batch was committed, the other half fails: only that half is retried.
    @Test func committedDecisionsAreNotRetriedWhenOthersFail() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            let flow = try Flow(cluster)
            let calls = Calls()
            calls.isHeld = true
            var worker = try makeWorker(flow, calls)
            let ids = [UUID(), UUID()]
            for id in ids { hold(id, flow.environment, &worker) }
            calls.fail([
                PostgresError(sqlState: "22021", message: "a bad row"), nil,
                PostgresError(sqlState: "57P03", message: "starting up"),
            ])
            let problem = try worker.step()
            #expect(problem?.contains("57P03") == true)
            try wait("both are called") {
                _ = try worker.step()
                return calls.made.count >= 2
            }
            #expect(calls.decided == [ids[0]: 1, ids[1]: 1])
            calls.isHeld = false
            try wait("both are done") {
                _ = try worker.step()
                return worker.isIdle
            }
            #expect(calls.made.count == 2)
        }
    }

    @Test func callerIsReloadedAfterMaximumAgeAndNewRevision() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            let flow = try Flow(cluster)
            for (age, isEdited, versions) in [
                (Duration.zero, false, [0, 1]), (.seconds(600), false, [0, 0]), (.seconds(600), true, [0, 1]),
            ] {
                let calls = Calls()
                var limits = WorkerLimits()
                limits.callerAgeMax = age
                var worker = try makeWorker(flow, calls, limits)
                for version in [0, 1] {
                    calls.version = version
                    if isEdited { calls.revision = Int64(version) }
                    hold(UUID(), flow.environment, &worker)
                    try wait("the call is done") {
                        _ = try worker.step()
                        return worker.isIdle
                    }
                }
                #expect(calls.made.map(\.version) == versions)
            }
        }
    }

    /// A key with a long call and continuous changes does not fill the memory.
    @Test func messagesOfOneKeyAreLimited() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let calls = Calls()
            calls.isHeld = true
            var limits = WorkerLimits()
            limits.keysInFlightMax = 4
            var worker = try makeWorker(flow, calls, limits)
            let key = try flow.key(.users, .realms, UUID())
            try publish(&flow, &worker, "all changes are published") { flow in
                let counter = try flow.counter()
                if try flow.relayed().position == counter {
                    if counter >= 40 { return true }
                    try flow.put(key, #"{"userId": "\#(counter)"}"#)
                }
                return false
            }
            try wait("as many are held as may be") {
                _ = try worker.step()
                return worker.heldMessageCount >= 16
            }
            for _ in 0..<20 { _ = try worker.step() }
            let (held, count) = (worker.heldMessageCount, worker.inFlightMessageCount)
            #expect(held == 16 && count == 16)
            calls.isHeld = false
            try wait("the rest comes") {
                _ = try worker.step()
                return try worker.isIdle && state("done", flow.environment, &flow) == 1
            }
            #expect(worker.heldMessageCount == 0)
        }
    }

    /// A backlog of events of an old generation needs no query per event.
    @Test func oldGenerationNeedsNoQuery() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            func set(_ generation: Int64) throws {
                try flow.connection.run("UPDATE realm.environment SET generation = \(generation)")
            }
            var reader = EventReader(group: "group", logger: quiet)
            let environment = flow.environment
            func isCurrent(_ generation: Int64) throws -> Bool {
                try reader.isCurrent(generation, of: environment, connection: &flow.connection)
            }
            try set(5)
            var answers = [try isCurrent(5)]
            // A query would return the old generation as the current one.
            try set(4)
            answers.append(try isCurrent(4))
            try set(6)
            answers.append(try isCurrent(6))
            answers.append(try isCurrent(5))
            #expect(answers == [true, false, true, false])
        }
    }
}

extension CallingTests {
    func makeWorker(
        _ flow: borrowing Flow, _ calls: Calls, _ limits: WorkerLimits = WorkerLimits(), _ logger: Logger = quiet
    ) throws -> Worker<CallingHandler> {
        let configuration = WorkerConfiguration(
            group: "group", topics: [Topics.realm.name], brokers: flow.cluster.address, properties: fastGroup,
            conninfo: flow.conninfo)
        return try Worker(CallingHandler(calls), at: configuration, limits: limits, logger: logger)
    }

    /// As if an event of the key had arrived.
    func hold(_ id: UUID, _ environment: EnvironmentID, _ worker: inout Worker<CallingHandler>) {
        let subject = EventSubject(realm: .users, kind: .realms, id: id)
        let partition = TopicPartition(topic: Topics.realm.name, partition: 0)
        let receipt = Receipt(partition: partition, tracker: -1, slot: 0)
        worker.schedule { scheduler in
            scheduler.received(
                receipt, of: WorkKey(environment: environment, subject: subject), at: 1, isEdit: true, from: partition,
                now: .now)
        }
    }

    func add(_ count: Int, to flow: inout Flow, _ environment: EnvironmentID) throws {
        var directory = RealmDirectory()
        let realm = try directory.id(of: .users, in: environment, create: true, on: &flow.connection)
        var batch = WriteBatch(environment: environment)
        for _ in 0..<count {
            let key = ObjectKey(realm: try #require(realm), kind: .realms, id: UUID())
            batch.put(key, try CanonicalJSON(#"{"state": "new"}"#), decision: 0)
        }
        _ = try batch.commit(on: &flow.connection)
    }

    /// Number of objects of an environment in a state.
    func state(_ state: String, _ environment: EnvironmentID, _ flow: inout Flow) throws -> Int {
        Int(
            try flow.connection.run(
                """
                SELECT count(*) FROM realm.object
                WHERE environment_id = \(environment.rawValue) AND fields->>'state' = \(state)
                """)[0].value(0, as: Int64.self))
    }

    func parked(_ environment: EnvironmentID, _ flow: inout Flow) throws -> [String] {
        try flow.connection.run("SELECT reason FROM pipeline.parked WHERE environment_id = \(environment.rawValue)")
            .map { try $0.value(0) }
    }

    /// Runs a relay and the worker until `isDone`.
    func publish(
        _ flow: inout Flow, _ worker: inout Worker<CallingHandler>, _ what: String,
        until isDone: (inout Flow) throws -> Bool
    ) throws {
        var relay = try flow.makeRelay()
        try wait(what) {
            _ = try relay.step(waitMax: .milliseconds(1))
            _ = try worker.step()
            return try isDone(&flow)
        }
    }

    /// Runs cycles until the breaker has admitted another probe.
    func untilProbed(_ worker: inout Worker<CallingHandler>, from before: CircuitBreaker) throws {
        let environment = try #require(worker.breakers.first { !$0.value.isClosed }?.key)
        var states: [CircuitBreaker.State] = [before.state]
        try wait("probes") {
            _ = try worker.step()
            if let state = worker.breakers[environment]?.state, state != states.last { states.append(state) }
            return states.count > 3
        }
    }
}

/// Records log messages.
private final class Logged: LogHandler, Sendable {
    private let lines = Mutex<[String]>([])

    func count(of text: String) -> Int { lines.withLock { $0.count { $0.contains(text) } } }

    func log(event: LogEvent) { lines.withLock { $0.append("\(event.message)") } }

    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .info }
        set {}
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }
}

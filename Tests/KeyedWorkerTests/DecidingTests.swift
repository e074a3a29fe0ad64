import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import KeyedWorker

/// A handler without calls is one function; the worker does the rest.
@Suite(.ownThreads) struct DecidingTests {
    @Test func handlerWithoutCallsIsOneFunction() async throws {
        try await withDecider { flow, worker, journal in
            let ana = UUID()
            let key = try flow.key(.users, .realms, ana)
            try flow.put(key, #"{"userId": "ana"}"#)
            try flow.publishAll()
            try wait("the copy") { try worker.step() == nil && copy(of: ana, &flow) == #"{"userId": "ana"}"# }
            try wait("its end") { try worker.step() == nil && worker.isIdle }
            #expect(journal.decided(ana) == ["written"])

            // A key that cannot be decided yet is deferred, and decided from the then current state.
            try flow.put(key, #"{"waits": true}"#)
            try flow.publishAll()
            try wait("it is parked") { try worker.step() == nil && parkedCount(&flow) == 1 }
            try wait("a retry") { try worker.step() == nil && journal.decided(ana).contains("retry") }
            #expect(try copy(of: ana, &flow) == #"{"userId": "ana"}"#)
            try flow.put(key, #"{"userId": "ben"}"#)
            try wait("the copy again") { try worker.step() == nil && copy(of: ana, &flow) == #"{"userId": "ben"}"# }
            try wait("nothing waits") { try worker.step() == nil && parkedCount(&flow) == 0 && worker.isIdle }
        }
    }

    /// Edits of devices and integrations are distinguished from writes of services, deletions included, from the
    /// database through the relay's headers to the handler. Events of a deferred key may be edits.
    @Test func editsAreDistinguishedFromServiceWrites() async throws {
        try await withDecider { flow, worker, journal in
            let (ana, ben) = (UUID(), UUID())
            let key = try flow.key(.users, .realms, ana)
            func expect(_ lines: [String]) throws {
                try flow.publishAll()
                try wait("\(lines)") { try worker.step() == nil && journal.decided(ana).count >= lines.count }
                try wait("its end") { try worker.step() == nil && worker.isIdle }
                #expect(journal.decided(ana) == lines)
            }
            try flow.put(key, #"{"userId": "a"}"#, isEdit: true)
            try expect(["edited"])
            try flow.put(key, #"{"userId": "b"}"#)
            try expect(["edited", "written"])
            try flow.put(key, #"{"userId": "c"}"#, isEdit: true)
            try expect(["edited", "written", "edited"])
            var batch = WriteBatch(environment: flow.environment)
            batch.delete(key, decision: 0, isEdit: true)
            _ = try batch.commit(on: &flow.connection)
            try expect(["edited", "written", "edited", "edited"])

            try flow.put(try flow.key(.users, .realms, ben), #"{"waits": true}"#)
            try flow.publishAll()
            try wait("it is parked") { try worker.step() == nil && parkedCount(&flow) == 1 }
            try flow.put(key, #"{"userId": "d"}"#)
            try expect(["edited", "written", "edited", "edited", "written"])
            try flow.put(key, #"{"waits": "long"}"#, isEdit: true)
            try flow.publishAll()
            try wait("both are parked") { try worker.step() == nil && parkedCount(&flow) == 2 }
            try flow.put(key, #"{"userId": "e"}"#)
            try flow.publishAll()
            try wait("it is not parked") { try worker.step() == nil && parkedCount(&flow) == 1 }
            #expect(journal.decided(ana).dropFirst(5) == ["edited", "edited"])
        }
    }

    /// Runs a worker with a decider that reads `realm.events`.
    private func withDecider(
        _ body: @Sendable (inout Flow, inout Worker<Decider>, Journal) throws -> Void
    ) async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            let journal = Journal()
            var limits = WorkerLimits()
            (limits.dueInterval, limits.attemptsMax) = (.milliseconds(20), 1_000_000)
            let configuration = WorkerConfiguration(
                group: "group", topics: [Topics.realm.name], brokers: cluster.address, properties: fastGroup,
                conninfo: flow.conninfo)
            var worker = try Worker(Decider(journal), at: configuration, limits: limits, logger: quiet)
            try body(&flow, &worker, journal)
        }
    }

    private func copy(of id: UUID, _ flow: inout Flow) throws -> String? {
        let key = try flow.key(.common, .realms, id)
        let rows = try flow.connection.run(RealmObject.load([key], in: flow.environment))
        return try RealmObject.byKey(rows)[key]?.fields.map { String(decoding: $0.bytes, as: UTF8.self) }
    }

    private func parkedCount(_ flow: inout Flow) throws -> Int {
        try flow.connection.run("SELECT FROM pipeline.parked").count
    }
}

/// The inputs of each key.
private final class Journal: Sendable {
    private let lines = Mutex<[UUID: [String]]>([:])
    func note(_ id: UUID, _ line: String) { lines.withLock { $0[id, default: []].append(line) } }
    func decided(_ id: UUID) -> [String] { lines.withLock { $0[id] ?? [] } }
}

/// Copies each object to `/common`, or waits for the time that the object names.
private struct Decider: Handler {
    static let skipsUneditedKeys = true

    let journal: Journal
    private var directory = RealmDirectory()

    init(_ journal: Journal) { self.journal = journal }

    mutating func decide(
        _ inputs: [WorkItem<Never>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Never>] {
        let realms = try directory.ids(of: [.users, .common], in: environment, create: true, on: &connection)
        guard let users = realms[.users], let common = realms[.common] else { return inputs.map { _ in .finished } }
        let keys = inputs.map { ObjectKey(realm: users, kind: .realms, id: $0.subject.id) }
        let objects = try RealmObject.byKey(connection.run(RealmObject.load(keys, in: environment)))
        return inputs.enumerated().map { index, input in
            switch input.origin {
            case .event: journal.note(input.subject.id, input.isEdit ? "edited" : "written")
            case .retry: journal.note(input.subject.id, "retry")
            }
            guard let object = objects[keys[index]], let fields = object.fields else { return .finished }
            batch.expect(object.key, at: object.position, decision: index)
            let text = String(decoding: fields.bytes, as: UTF8.self)
            if text.contains("waits") {
                let wait = text.contains("long") ? Duration.seconds(600) : .zero
                return .deferred(reason: "it waits", after: wait, cause: .attempt)
            }
            batch.put(ObjectKey(realm: common, kind: .realms, id: object.key.id), fields, decision: index)
            return .finished
        }
    }
}

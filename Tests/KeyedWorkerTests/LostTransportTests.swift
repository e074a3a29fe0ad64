import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

@Suite(.ownThreads) struct LostTransportTests {
    /// The broker is killed and restarts empty, while a group is stopped or running. A new epoch begins, every
    /// published kind is published again, and the group receives all objects, including those published while it was
    /// stopped.
    @Test(arguments: [true, false]) func emptyBrokerIsRepublished(whileTheGroupIsAway: Bool) async throws {
        try await withMockCluster(topics: partitionCounts, restarts: true) { cluster in
            var flow = try Flow(cluster)
            let seen = DecidedKeys()
            var ids = try add(40, to: &flow)
            if whileTheGroupIsAway {
                try follow(&flow, seen, until: ids)
            }
            var worker = try makeWorker(flow, seen)
            try publish(&flow, &worker, "the first events") { _ in seen.ids == ids }
            let offsets = try flow.connection.run("SELECT count(*) FROM realm.relay_offset")
            #expect(try offsets[0].value(0, as: Int64.self) > 0)

            if whileTheGroupIsAway { worker = try closing(worker) { try makeWorker(flow, seen) } }
            ids.formUnion(try add(10, to: &flow))
            try cluster.restartEmpty()
            ids.formUnion(try add(10, to: &flow))
            seen.removeAll()
            try publish(&flow, &worker, "all events again") { flow in
                let relayed = try flow.relayed()
                let progress = try flow.connection.run("SELECT DISTINCT epoch FROM pipeline.progress")
                return try seen.ids == ids && relayed.publishedEpoch == 2 && relayed.position == flow.counter()
                    && progress.decode(Int64.self) == [2]
            }
            let relayed = try flow.relayed()
            #expect(relayed.epoch == 2)

            // Later changes are published as usual.
            let more = try add(5, to: &flow)
            try publish(&flow, &worker, "later events") { _ in seen.ids.isSuperset(of: more) }
            let end = try flow.relayed()
            #expect(end.epoch == 2)
        }
    }

    /// A broker that lost its content has as many messages again as the group had read: no later message reveals the
    /// loss.
    @Test func newEpochIsReadWithoutAMessageOfIt() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let seen = DecidedKeys()
            let ids = try add(10, to: &flow)
            var worker = try makeWorker(flow, seen)
            try publish(&flow, &worker, "the events") { _ in seen.ids == ids }
            seen.removeAll()
            try flow.connection.run("UPDATE realm.relay SET epoch = epoch + 1")
            let end = ContinuousClock.now + deadlineMax
            while seen.ids != ids {
                guard ContinuousClock.now < end else { throw WaitTimeout(what: "the events again") }
                _ = try worker.step()
            }
        }
    }

    /// The group read everything and lost the record of its epoch: the broker may have other messages now.
    @Test func partitionWithoutRecordedEpochIsReadAgain() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let seen = DecidedKeys()
            let ids = try add(10, to: &flow)
            try follow(&flow, seen, until: ids)
            try flow.connection.run("DELETE FROM pipeline.progress")
            seen.removeAll()
            var worker = try makeWorker(flow, seen)
            let end = ContinuousClock.now + deadlineMax
            while seen.ids != ids {
                guard ContinuousClock.now < end else { throw WaitTimeout(what: "the events again") }
                _ = try worker.step()
            }
        }
    }

    @Test func unreadableMessageIsDeadLettered() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            var producer = try Producer(brokers: cluster.address)
            try producer.send(Topics.realm.name, key: [1], value: [2], tag: 1)
            let isFlushed = producer.flush(waitMax: deadlineMax)
            #expect(isFlushed)
            let seen = DecidedKeys()
            let ids = try add(10, to: &flow)
            var worker = try makeWorker(flow, seen)
            try publish(&flow, &worker, "the good events") { _ in seen.ids == ids }
            let rows = try flow.connection.run("SELECT group_name, is_dead, reason FROM pipeline.parked")
            #expect(rows.count == 1)
            #expect(try rows[0].value(0) == "group")
            #expect(try rows[0].value(1, as: Bool.self))
            #expect(try rows[0].value(2, as: String.self).contains("ce_id"))
        }
    }

    private func add(_ count: Int, to flow: inout Flow) throws -> Set<UUID> {
        var batch = WriteBatch(environment: flow.environment)
        var ids: Set<UUID> = []
        for _ in 0..<count {
            let id = UUID()
            ids.insert(id)
            batch.put(try flow.key(.users, .realms, id), try CanonicalJSON(#"{"userId": "\#(id)"}"#), decision: 0)
        }
        _ = try batch.commit(on: &flow.connection)
        return ids
    }

    private func makeWorker(_ flow: borrowing Flow, _ seen: DecidedKeys) throws -> Worker<RecordingHandler> {
        let configuration = WorkerConfiguration(
            group: "group", topics: [Topics.realm.name], brokers: flow.cluster.address, properties: fastGroup,
            conninfo: flow.conninfo)
        return try Worker(RecordingHandler(seen: seen), at: configuration, limits: WorkerLimits(), logger: quiet)
    }

    /// A first member that reads everything and leaves: the group has committed offsets and a past epoch.
    private func follow(_ flow: inout Flow, _ seen: DecidedKeys, until ids: Set<UUID>) throws {
        var worker = try makeWorker(flow, seen)
        try publish(&flow, &worker, "a first member") { _ in seen.ids == ids }
    }

    /// Destroys a worker before the next one is created.
    private func closing(
        _ worker: consuming Worker<RecordingHandler>, _ next: () throws -> Worker<RecordingHandler>
    ) throws -> Worker<RecordingHandler> {
        do { _ = consume worker }
        return try next()
    }

    private func publish(
        _ flow: inout Flow, _ worker: inout Worker<RecordingHandler>, _ what: String,
        until isDone: (inout Flow) throws -> Bool
    ) throws {
        let end = ContinuousClock.now + deadlineMax
        while true {
            do {
                var relay = try flow.makeRelay()
                while true {
                    _ = try worker.step()
                    if try isDone(&flow) { return }
                    guard ContinuousClock.now < end else { throw WaitTimeout(what: what) }
                    _ = try relay.step(waitMax: .milliseconds(5))
                }
            } catch let error as WaitTimeout {
                throw error
            } catch is Relay.ContentLost {
            } catch is KafkaError {
            }
        }
    }
}

import Essentials
import FoundationEssentials
import HTTPClient
import Kafka
import Logging
import Model
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

/// Retention removes what a group has not read yet. The mock cluster keeps 5 MB of a partition: more than that is
/// written to have something removed.
@Suite(.ownThreads) struct MissedTests {
    @Test func whatWasRemovedWhileAGroupWasAwayIsPublishedAgain() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            let (seen, log) = (Seen(), Lines())
            let ids = try add(40, to: &flow)
            try readAndLeave(&flow, seen, log, until: ids)
            #expect(log.errors.isEmpty)

            let missed = try add(20, to: &flow)
            try flow.publishAll()
            try fill(&flow)
            seen.forget()
            var worker = try makeWorker(flow, seen, log)
            try publish(&flow, &worker, "what was removed") { flow in
                try seen.ids.isSuperset(of: missed) && isDone(&flow)
            }
            let line = try #require(log.errors.first)
            #expect(line.contains("group=group") && line.contains("topic=realm.events"))
            #expect(line.contains("offset=40") && line.contains("count="))
            let position = try flow.relayed()
            #expect(position.epoch == 1)

            // A group that is new has missed it too. It is there again already: nothing more is asked for.
            let (other, otherLog) = (Seen(), Lines())
            var second = try makeWorker(flow, other, otherLog, group: "other")
            try publish(&flow, &second, "the other group") { _ in other.ids == ids.union(missed) }
            #expect(otherLog.errors.first?.contains("asked=before") == true)
            let asked = try askedCount(&flow)
            #expect(asked == 1)
        }
    }

    @Test func aNewGroupGetsWhatWasRemovedBeforeItWasThere() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            let (seen, log) = (Seen(), Lines())
            let ids = try add(30, to: &flow)
            try flow.publishAll()
            try fill(&flow)
            var worker = try makeWorker(flow, seen, log)
            try publish(&flow, &worker, "what was removed") { flow in try seen.ids == ids && isDone(&flow) }
            #expect(log.errors.first?.contains("asked=now") == true)
            let asked = try askedCount(&flow)
            #expect(asked == 1)
        }
    }

    @Test func whatIsRemovedUnderAGroupThatReadsIsPublishedAgain() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            let (seen, log) = (Seen(), Lines())
            let ids = try add(10, to: &flow)
            var worker = try makeWorker(flow, seen, log)
            try publish(&flow, &worker, "the first events") { _ in seen.ids == ids }
            try worker.pause()
            let missed = try add(10, to: &flow)
            try flow.publishAll()
            try fill(&flow)
            // Resumed by its next round.
            try publish(&flow, &worker, "what was removed") { flow in
                try seen.ids.isSuperset(of: missed) && isDone(&flow)
            }
            #expect(log.errors.first?.contains("asked=now") == true)
            let asked = try askedCount(&flow)
            #expect(asked == 1)
        }
    }

    /// Offsets say nothing then: what the group had read were others.
    @Test func whatWasRemovedOfANewEpochIsPublishedAgain() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            let (seen, log) = (Seen(), Lines())
            var ids = try add(50, to: &flow)
            let key = try flow.key(.users, .realms, UUID())
            ids.insert(key.id)
            for number in 0..<20 {
                try flow.put(key, #"{"userId": "\#(number)"}"#)
                try flow.publishAll()
            }
            try readAndLeave(&flow, seen, log, until: ids)
            try cluster.restartEmpty()
            try flow.publish("everything again") { flow in
                let relayed = try flow.relayed()
                return relayed.epoch == 2 && relayed.publishedEpoch == 2
            }
            // The group has committed 70.
            try fill(&flow, epoch: 2, from: 51, through: 65)
            seen.forget()
            var worker = try makeWorker(flow, seen, log)
            try publish(&flow, &worker, "what was removed") { flow in try seen.ids == ids && isDone(&flow) }
            #expect(log.errors.first?.contains("asked=now") == true)
            let asked = try askedCount(&flow)
            #expect(asked == 1)
        }
    }

    /// Its epoch is asked for again: without it everything would be read again.
    @Test func anEpochIsNotForgottenWhenPostgreSQLFailsDuringARebalance() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            let (seen, log) = (Seen(), Lines())
            try readAndLeave(&flow, seen, log, until: try add(5, to: &flow))
            let later = try add(5, to: &flow)
            try flow.publishAll()

            var connection = try Connection(flow.conninfo)
            var consumer = try Consumer(
                brokers: cluster.address, group: "group", topics: [Topics.realm.name], properties: fastGroup)
            var reader = EventReader(group: "group", logger: quiet)
            var messages: [Message] = []
            try wait("messages") {
                messages += try consumer.nextBatch(countMax: 100, waitMax: .milliseconds(50))
                return messages.count == later.count
            }
            try flow.connection.run(
                """
                SELECT pg_terminate_backend(pid) FROM pg_stat_activity
                WHERE datname = current_database() AND pid <> pg_backend_pid()
                """)
            #expect(throws: PostgresError.self) { try reader.follow(&consumer, &connection) }
            try wait("PostgreSQL") { (try? reader.follow(&consumer, &connection)) != nil }
            let admitted = try reader.admit(messages, consumer: &consumer, connection: &connection)
            #expect(Set(admitted.events.map(\.id)) == later)
        }
    }

    /// A crash before has the next worker begin anew too.
    @Test func anEpochIsRecordedOnceItsBeginningIsCommitted() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            try readAndLeave(&flow, Seen(), Lines(), until: try add(5, to: &flow))
            try flow.connection.run("UPDATE realm.relay SET epoch = epoch + 1")
            func recorded() throws -> [Int64] {
                try flow.connection.run("SELECT epoch FROM pipeline.progress").decode(Int64.self)
            }
            var connection = try Connection(flow.conninfo)
            for isLast in [false, true] {
                var consumer = try Consumer(
                    brokers: cluster.address, group: "group", topics: [Topics.realm.name], properties: fastGroup)
                var reader = EventReader(group: "group", logger: quiet)
                try wait("the beginning") {
                    _ = try consumer.nextBatch(countMax: 100, waitMax: .milliseconds(50))
                    reader.nextEpoch = .now
                    try reader.follow(&consumer, &connection)
                    return !reader.unrecorded.isEmpty
                }
                #expect(try recorded() == [1])
                if isLast {
                    try wait("its record") {
                        _ = try consumer.nextBatch(countMax: 100, waitMax: .milliseconds(50))
                        try reader.follow(&consumer, &connection)
                        return try recorded() == [2]
                    }
                }
            }
        }
    }

    private func add(_ count: Int, to flow: inout Flow) throws -> Set<UUID> {
        var batch = WriteBatch(environment: flow.environment)
        let ids = Set((0..<count).map { _ in UUID() })
        for id in ids {
            batch.put(try flow.key(.users, .realms, id), try CanonicalJSON(#"{"userId": "\#(id)"}"#), decision: 0)
        }
        _ = try batch.commit(on: &flow.connection)
        return ids
    }

    /// Writes more than the partition keeps: events of a generation that is over, which nobody looks at.
    ///
    /// - Parameter first: Where the partition is to begin then: at this offset at least.
    private func fill(
        _ flow: inout Flow, epoch: Int64 = 1, from first: Int64 = 61, through last: Int64 = .max
    ) throws {
        var producer = try Producer(
            brokers: flow.cluster.address, properties: ["compression.codec": "none", "batch.num.messages": "1"])
        let admin = try Admin(brokers: flow.cluster.address)
        let partition = TopicPartition(topic: Topics.realm.name, partition: 0)
        var outlet = EventWriter(environment: flow.environment, generation: 0, epoch: epoch)
        let object = PublishedObject(
            realm: .users, kind: .realms, id: UUID(), position: 1, editPosition: 1,
            time: Timestamp(millisecondsSinceEpoch: 0))
        let value = [UInt8](repeating: UInt8(ascii: " "), count: 60_000)
        try wait("enough is written") {
            try unsafe value.withUnsafeBytes {
                try unsafe outlet.send(object, to: Topics.realm, json: $0, tag: 0, through: &producer)
            }
            let isFlushed = producer.flush(waitMax: deadlineMax)
            return try isFlushed && admin.watermarks(partition).lowerBound >= first
        }
        let kept = try admin.watermarks(partition)
        #expect(kept.lowerBound <= last)
        // As if they were the relay's own.
        try flow.connection.run("UPDATE realm.relay_offset SET last_offset = \(kept.upperBound - 1)")
    }

    private func makeWorker(
        _ flow: borrowing Flow, _ seen: Seen, _ log: Lines, group: String = "group"
    ) throws -> Worker<NotingHandler> {
        let place = WorkerPlace(
            group: group, topics: [Topics.realm.name], brokers: flow.cluster.address, properties: fastGroup,
            conninfo: flow.conninfo)
        return try Worker(NotingHandler(seen: seen), at: place, limits: WorkerLimits(), logger: log.logger)
    }

    /// A member that reads all and goes.
    private func readAndLeave(_ flow: inout Flow, _ seen: Seen, _ log: Lines, until ids: Set<UUID>) throws {
        var worker = try makeWorker(flow, seen, log)
        try publish(&flow, &worker, "a first member") { _ in seen.ids == ids }
    }

    private func publish(
        _ flow: inout Flow, _ worker: inout Worker<NotingHandler>, _ what: String,
        until isDone: (inout Flow) throws -> Bool
    ) throws {
        var relay = try flow.makeRelay()
        try wait(what) {
            _ = try worker.step()
            _ = try relay.step(waitMax: .milliseconds(5))
            return try isDone(&flow)
        }
    }

    /// Nothing is left to be published again.
    private func isDone(_ flow: inout Flow) throws -> Bool {
        try flow.connection.run("SELECT FROM realm.republish").count == 0
    }

    /// How often something was asked for, in one environment.
    private func askedCount(_ flow: inout Flow) throws -> Int64 {
        try flow.connection.run(
            "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('realm.republish', 'number')::regclass), 0)"
        )[0].value(0)
    }
}

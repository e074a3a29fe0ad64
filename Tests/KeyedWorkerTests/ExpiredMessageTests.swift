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

/// Retention removes messages that a group has not read. The mock cluster keeps 5 MB of a partition; the tests write
/// more.
@Suite(.ownThreads) struct ExpiredMessageTests {
    @Test func messagesExpiredWhileGroupWasStoppedAreRepublished() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            let (seen, log) = (DecidedKeys(), LogCapture())
            let ids = try add(40, to: &flow)
            try readAndLeave(&flow, seen, log, until: ids)
            #expect(log.errors.isEmpty)

            let expired = try add(20, to: &flow)
            try flow.publishAll()
            try fill(&flow)
            seen.removeAll()
            var worker = try makeWorker(flow, seen, log)
            try publish(&flow, &worker, "what was removed") { flow in
                try seen.ids.isSuperset(of: expired) && isDone(&flow)
            }
            let line = try #require(log.errors.first)
            #expect(line.contains("group=group") && line.contains("topic=realm.events"))
            #expect(line.contains("offset=40") && line.contains("count="))
            let position = try flow.relayed()
            #expect(position.epoch == 1)

            // A new group also has the gap. The objects are already republished: nothing is requested.
            let (other, otherLog) = (DecidedKeys(), LogCapture())
            var second = try makeWorker(flow, other, otherLog, group: "other")
            try publish(&flow, &second, "the other group") { _ in other.ids == ids.union(expired) }
            #expect(otherLog.errors.first?.contains("requested=before") == true)
            let requests = try requestCount(&flow)
            #expect(requests == 1)
        }
    }

    @Test func messagesExpiredBeforeGroupExistedAreRepublished() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            let (seen, log) = (DecidedKeys(), LogCapture())
            let ids = try add(30, to: &flow)
            try flow.publishAll()
            try fill(&flow)
            var worker = try makeWorker(flow, seen, log)
            try publish(&flow, &worker, "what was removed") { flow in try seen.ids == ids && isDone(&flow) }
            #expect(log.errors.first?.contains("requested=now") == true)
            let requests = try requestCount(&flow)
            #expect(requests == 1)
        }
    }

    @Test func messagesExpiredDuringReadingAreRepublished() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            let (seen, log) = (DecidedKeys(), LogCapture())
            let ids = try add(10, to: &flow)
            var worker = try makeWorker(flow, seen, log)
            try publish(&flow, &worker, "the first events") { _ in seen.ids == ids }
            try worker.pause()
            let expired = try add(10, to: &flow)
            try flow.publishAll()
            try fill(&flow)
            // Its next cycle resumes it.
            try publish(&flow, &worker, "what was removed") { flow in
                try seen.ids.isSuperset(of: expired) && isDone(&flow)
            }
            #expect(log.errors.first?.contains("requested=now") == true)
            let requests = try requestCount(&flow)
            #expect(requests == 1)
        }
    }

    /// Offsets do not reveal the gap: the group had read other messages.
    @Test func expiredMessagesOfNewEpochAreRepublished() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1], restarts: true) { cluster in
            var flow = try Flow(cluster)
            let (seen, log) = (DecidedKeys(), LogCapture())
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
            seen.removeAll()
            var worker = try makeWorker(flow, seen, log)
            try publish(&flow, &worker, "what was removed") { flow in try seen.ids == ids && isDone(&flow) }
            #expect(log.errors.first?.contains("requested=now") == true)
            let requests = try requestCount(&flow)
            #expect(requests == 1)
        }
    }

    /// The epoch is queried again; without it everything would be reread.
    @Test func epochSurvivesPostgreSQLFailureDuringRebalance() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            let (seen, log) = (DecidedKeys(), LogCapture())
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
            #expect(throws: PostgresError.self) { try reader.handleAssignmentChanges(&consumer, &connection) }
            try wait("PostgreSQL") { (try? reader.handleAssignmentChanges(&consumer, &connection)) != nil }
            let admitted = try reader.admit(messages, consumer: &consumer, connection: &connection)
            #expect(Set(admitted.events.map(\.id)) == later)
        }
    }

    /// After a crash before that, the next worker also reads from the beginning.
    @Test func epochIsRecordedAfterItsBeginningIsCommitted() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            try readAndLeave(&flow, DecidedKeys(), LogCapture(), until: try add(5, to: &flow))
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
                    try reader.handleAssignmentChanges(&consumer, &connection)
                    return !reader.unrecordedEpochs.isEmpty
                }
                #expect(try recorded() == [1])
                if isLast {
                    try wait("its record") {
                        _ = try consumer.nextBatch(countMax: 100, waitMax: .milliseconds(50))
                        try reader.handleAssignmentChanges(&consumer, &connection)
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

    /// Writes more than the partition keeps: events of a generation that has ended, which are dropped.
    ///
    /// - Parameter first: Minimum first offset of the partition afterwards.
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
        let offsets = try admin.watermarks(partition)
        #expect(offsets.lowerBound <= last)
        // As if the relay had written them.
        try flow.connection.run("UPDATE realm.relay_offset SET last_offset = \(offsets.upperBound - 1)")
    }

    private func makeWorker(
        _ flow: borrowing Flow, _ seen: DecidedKeys, _ log: LogCapture, group: String = "group"
    ) throws -> Worker<RecordingHandler> {
        let configuration = WorkerConfiguration(
            group: group, topics: [Topics.realm.name], brokers: flow.cluster.address, properties: fastGroup,
            conninfo: flow.conninfo)
        return try Worker(RecordingHandler(seen: seen), at: configuration, limits: WorkerLimits(), logger: log.logger)
    }

    /// A member that reads everything and leaves.
    private func readAndLeave(_ flow: inout Flow, _ seen: DecidedKeys, _ log: LogCapture, until ids: Set<UUID>) throws {
        var worker = try makeWorker(flow, seen, log)
        try publish(&flow, &worker, "a first member") { _ in seen.ids == ids }
    }

    private func publish(
        _ flow: inout Flow, _ worker: inout Worker<RecordingHandler>, _ what: String,
        until isDone: (inout Flow) throws -> Bool
    ) throws {
        var relay = try flow.makeRelay()
        try wait(what) {
            _ = try worker.step()
            _ = try relay.step(waitMax: .milliseconds(5))
            return try isDone(&flow)
        }
    }

    /// Whether no republication is pending.
    private func isDone(_ flow: inout Flow) throws -> Bool {
        try flow.connection.run("SELECT FROM realm.republish").count == 0
    }

    /// Number of requests in one environment.
    private func requestCount(_ flow: inout Flow) throws -> Int64 {
        try flow.connection.run(
            "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence('realm.republish', 'number')::regclass), 0)"
        )[0].value(0)
    }
}

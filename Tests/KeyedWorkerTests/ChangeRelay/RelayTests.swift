import Essentials
import FoundationEssentials
import Kafka
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ChangeRelay
@testable import KeyedWorker

@Suite(.ownThreads) struct RelayTests {
    @Test func objectsBecomeMessagesInPositionOrder() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let id = UUID()
            let key = try flow.key(RealmPath.user("ana@example.com"), .timeEntry, id)
            let firstPosition = try flow.put(key, #"{"text": "æ", "durationSeconds": 60}"#, isEdit: true)
            let first = try #require(firstPosition)
            try flow.publishAll()
            let secondPosition = try flow.put(key, #"{"text": "b"}"#)
            let second = try #require(secondPosition)
            try flow.publishAll()
            // Unchanged fields, and an object of an unpublished kind, cause no events.
            let unchanged = try flow.put(key, #"{"text": "b"}"#)
            #expect(unchanged == nil)
            try flow.put(try flow.key(RealmPath.user("ana@example.com"), .user, UUID()), #"{"name": "Ana"}"#)
            try flow.publishAll()
            let thirdPosition = try flow.delete(key)
            let third = try #require(thirdPosition)
            try flow.publishAll()

            let messages = try flow.read(Topics.entry, countMin: 3)
            #expect(messages.map { $0.headerText("fieldpost-position") } == [first, second, third].map(String.init))
            #expect(messages.map(\.offset) == [0, 1, 2])
            #expect(messages.map { $0.key.map { String(decoding: $0, as: UTF8.self) } } == [id.text, id.text, id.text])
            let values = messages.map { $0.value.map { String(decoding: $0, as: UTF8.self) } }
            #expect(values == [#"{"text": "æ", "durationSeconds": 60}"#, #"{"text": "b"}"#, nil])
            #expect(messages.map(\.isTombstone) == [false, false, true])
            let users = try flow.read(Topics.realm, countMin: 0)
            #expect(users.isEmpty)
            try expectHeaders(of: messages[0], id, first, flow.environment)
            #expect(messages[2].headerText("fieldpost-edit-position") == String(first))
        }
    }

    private func expectHeaders(
        of message: Message, _ id: UUID, _ position: Int64, _ environment: EnvironmentID
    ) throws {
        var headers: [String: String] = [:]
        message.forEachHeader { headers[$0.text] = String(decoding: $1.copied, as: UTF8.self) }
        let time = try #require(headers[EventHeaders.time])
        headers[EventHeaders.time] = nil
        #expect(Timestamp(time) != nil)
        #expect(
            headers == [
                "ce_specversion": "1.0", "ce_id": "\(environment):1:\(position)",
                "ce_source": "/environments/\(environment)", "ce_type": "fieldpost.TimeEntry",
                "ce_subject": "/users/ana@example.com/TimeEntry/\(id.text)", "ce_partitionkey": id.text,
                "content-type": "application/json",
                "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                "fieldpost-position": "\(position)", "fieldpost-edit-position": "\(position)",
                "fieldpost-generation": "1", "fieldpost-epoch": "1",
            ])
        var realms = RealmPathCache()
        let event = try Event(message, &realms)
        #expect(event.position == position && event.editPosition == position && event.epoch == 1)
        #expect(event.subject.description == headers[EventHeaders.subject])
    }

    @Test func objectsOfSeveralPagesArriveOnceEach() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let ids = (0..<1_050).map { _ in UUID() }
            var batch = WriteBatch(environment: flow.environment)
            for id in ids {
                batch.put(try flow.key(.users, .realms, id), try CanonicalJSON(#"{"userId": "\#(id)"}"#), decision: 0)
            }
            _ = try batch.commit(on: &flow.connection)
            try flow.publishAll()
            let messages = try flow.read(Topics.realm, countMin: ids.count)
            #expect(messages.count == ids.count)
            var realms = RealmPathCache()
            #expect(Set(try messages.map { try Event($0, &realms).id }) == Set(ids))
            let byPartition = Dictionary(grouping: messages, by: \.partition)
            #expect(byPartition.count == Topics.realm.partitions)
            for (_, messages) in byPartition {
                let positions = try messages.map { try Event($0, &realms).position }
                #expect(positions == positions.sorted())
            }
        }
    }

    @Test func sentButUnstoredMessageIsRepublished() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            try flow.put(try flow.key(.users, .realms, UUID()), #"{"userId": "a"}"#)
            try sendOnly(try flow.makeRelay(), &flow)
            let before = try flow.relayed()
            #expect(before.position == 0)

            try flow.publishAll()
            let messages = try flow.read(Topics.realm, countMin: 2)
            #expect(messages.count == 2)
            #expect(Set(messages.map { $0.headerText("ce_id") }).count == 1)
        }
    }

    /// All its objects are republished in the same epoch: Kafka has lost nothing, and no group needs to reread others'
    /// messages.
    @Test func newGenerationIsRepublishedInSameEpoch() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            for _ in 0..<2 { try flow.put(try flow.key(.users, .realms, UUID()), #"{"userId": "a"}"#) }
            try flow.connection.run("INSERT INTO realm.environment (name) VALUES ('other')")
            try flow.publishAll()
            let before = try flow.relayed()
            let environment = flow.environment.rawValue
            try flow.connection.run("UPDATE realm.environment SET generation = 2 WHERE id = \(environment)")
            try flow.publish("republication") { flow in
                let rows = try flow.connection.run(
                    """
                    SELECT generation = 2 AND published_epoch = epoch FROM realm.relay
                    WHERE environment_id = \(environment)
                    """
                )
                return try rows[0].value(0)
            }
            let messages = try flow.read(Topics.realm, countMin: 4)
            #expect(messages.map { $0.headerText("fieldpost-generation") } == ["1", "1", "2", "2"])
            #expect(Set(messages.map { $0.headerText("fieldpost-epoch") }) == ["\(before.epoch)"])
            let epochs = try flow.connection.run("SELECT DISTINCT epoch FROM realm.relay").decode(Int64.self)
            #expect(epochs == [before.epoch])
            // Positions that an outdated relay stores for the previous generation have no effect.
            for isRepublished in [false, true] {
                let stale = RelayProgress.Confirmed(
                    environment: flow.environment, generation: 1, epoch: before.epoch, from: before.position, to: 99,
                    isRepublished: isRepublished)
                #expect(try flow.connection.run(RelayStore.store(stale)).affectedCount == 0)
            }
        }
    }

    /// The environment was moved here, and activated before any relay read it: its objects have no change log.
    @Test func movedEnvironmentIsPublishedCompletely() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            try flow.put(try flow.key(.users, .realms, UUID()), #"{"userId": "a"}"#)
            // Before the activation it is not published.
            try flow.connection.run(["DELETE FROM store.change", "UPDATE realm.environment SET generation = 0"])
            try flow.connection.run(RelayStore.prepare)
            #expect(try flow.connection.run("SELECT FROM realm.relay").count == 0)
            #expect(try flow.connection.run(RelayStore.pendingEnvironments(except: [])).count == 0)
            #expect(try flow.connection.run(EnvironmentCounter.all).count == 0)
            try flow.connection.run("UPDATE realm.environment SET generation = 2")
            try flow.publishAll()
            #expect(try flow.read(Topics.realm, countMin: 1).count == 1)
        }
    }

    /// The generation changes while messages of the previous one are in flight: the same relay continues.
    @Test func relayContinuesWithNewGeneration() async throws {
        try await withMockCluster(topics: [Topics.realm.name: 1]) { cluster in
            var flow = try Flow(cluster)
            var relay = try flow.makeRelay(pageCountMax: 1)
            for generation in 2..<6 {
                for _ in 0..<20 { try flow.put(try flow.key(.users, .realms, UUID()), #"{"userId": "a"}"#) }
                for _ in 0..<5 { _ = try relay.step(waitMax: .milliseconds(5)) }
                try flow.connection.run("UPDATE realm.environment SET generation = \(Int64(generation))")
            }
            try wait("all is published") {
                _ = try relay.step(waitMax: .milliseconds(5))
                let (epoch, publishedEpoch, position) = try flow.relayed()
                let generation = try flow.connection.run("SELECT generation FROM realm.relay").decode(Int64.self)
                return try generation == [5] && epoch == publishedEpoch && position == flow.counter()
            }
        }
    }

    /// Steps until the message is sent, and drops the relay when the broker has the message: the confirmations of a
    /// step are stored by the next one, which does not occur.
    private func sendOnly(_ relay: consuming Relay, _ flow: inout Flow) throws {
        var relay = relay
        let admin = try Admin(brokers: flow.cluster.address)
        let partition = TopicPartition(topic: Topics.realm.name, partition: 0)
        try wait("the message is sent") {
            _ = try relay.step(waitMax: .milliseconds(1))
            // The broker may have confirmed it within the step.
            return !relay.sentAt.isEmpty || !relay.confirmed.isEmpty
        }
        try wait("the message is there") { try admin.watermarks(partition).upperBound > 0 }
    }

    @Test func standbyTakesOverWhenLeadersSessionEnds() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            var first = try flow.makeRelay()
            var second = try flow.makeRelay()
            try wait("the first relay is active") { try first.step(waitMax: .zero) }
            try wait("the second reaches the broker") {
                let isLeader = try second.step(waitMax: .zero)
                #expect(!isLeader)
                return second.reachesBrokers
            }
            let isStillActive = try first.step(waitMax: .zero)
            #expect(isStillActive)
            try flow.put(try flow.key(.users, .realms, UUID()), #"{"userId": "a"}"#)
            try wait("the first relay") {
                _ = try first.step(waitMax: .milliseconds(5))
                return try flow.relayed().position == 1
            }
            let isSecondActive = try second.step(waitMax: .zero)
            #expect(!isSecondActive)

            try flow.connection.run(
                """
                SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
                    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
                """)
            var failure: PostgresError?
            do { _ = try first.step(waitMax: .zero) } catch let error as PostgresError { failure = error }
            #expect(failure?.isConnectionLost == true)
            try wait("the second relay is active") { try second.step(waitMax: .zero) }
            try flow.put(try flow.key(.users, .realms, UUID()), #"{"userId": "b"}"#)
            try wait("the second relay") {
                _ = try second.step(waitMax: .milliseconds(5))
                return try flow.relayed().position == 2
            }
            let messages = try flow.read(Topics.realm, countMin: 2)
            #expect(messages.count == 2)
        }
    }

    @Test func compactionRemovesOldPublishedPointers() async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            let remaining = try flow.key(.users, .realms, UUID())
            let deleted = try flow.key(.users, .realms, UUID())
            try flow.put(remaining, #"{"userId": "a"}"#)
            try flow.put(deleted, #"{"userId": "b"}"#)
            _ = try flow.delete(deleted)
            try flow.connection.run("UPDATE store.change SET changed_at = now() - interval '1 hour'")
            var relay = try flow.makeRelay()
            // Nothing is published yet: nothing may be removed.
            try wait("the relay is active") { try relay.step(waitMax: .zero) }
            try relay.compact(keep: .seconds(60), interval: .seconds(1))
            try wait("compaction") {
                _ = try relay.step(waitMax: .milliseconds(5))
                try relay.compact(keep: .seconds(60), interval: .milliseconds(10))
                let rows = try flow.connection.run(
                    "SELECT (SELECT count(*) FROM realm.change), (SELECT count(*) FROM realm.object)")
                return try rows[0].value(0, as: Int64.self) == 0 && rows[0].value(1, as: Int64.self) == 1
            }
            let left = try flow.connection.run("SELECT id FROM realm.object")
            #expect(try left[0].value(0) == remaining.id)
            let floor = try flow.connection.run("SELECT compacted_position, position FROM realm.environment")
            #expect(try floor[0].value(0, as: Int64.self) == floor[0].value(1, as: Int64.self))
        }
    }

    /// An idle relay awaits the next position. It also finds a change whose notification was lost.
    @Test(arguments: [false, true]) func idleRelayIsNotified(isLost: Bool) async throws {
        try await withMockCluster(topics: partitionCounts) { cluster in
            var flow = try Flow(cluster)
            var relay = try flow.makeRelay()
            try wait("the relay is idle") {
                _ = try relay.step(waitMax: .milliseconds(5))
                return relay.isAwaiting
            }
            let isAwaited: Statement = "SELECT is_awaited FROM realm.environment"
            #expect(try flow.connection.run(isAwaited)[0].decode(Bool.self))
            if isLost { try flow.connection.run("UPDATE realm.environment SET is_awaited = false") }
            try flow.put(try flow.key(.users, .realms, UUID()), #"{"userId": "a"}"#)
            #expect(try !flow.connection.run(isAwaited)[0].decode(Bool.self))
            if !isLost {
                let isNotified = try relay.connection.waitForNotification(atMost: patienceMax, or: Wakeup())
                #expect(isNotified)
            }
            try wait("the change is published") {
                _ = try relay.step(waitMax: .milliseconds(5))
                return try flow.relayed().position == 1
            }
        }
    }
}

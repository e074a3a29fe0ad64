import Kafka
import Synchronization
import TestSupport
import Testing

@testable import LagMonitoring

private final class Flag: Sendable {
    private let value = Atomic<Bool>(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}

@Suite(.ownThreads) struct LagReaderTests {
    private static let partition = TopicPartition(topic: "t", partition: 0)

    private static func produce(_ count: Int, at address: String) throws {
        var producer = try Producer(brokers: address)
        for number in 0..<count { try producer.send("t", key: [1], value: [UInt8(truncatingIfNeeded: number)]) }
        let isFlushed = producer.flush(waitMax: patienceMax)
        #expect(isFlushed)
    }

    @Test func snapshotContainsBrokerState() async throws {
        try await withMockCluster(topics: ["t": 3, "u": 1]) { cluster in
            try Self.produce(3, at: cluster.address)
            let reader = try LagReader(brokers: cluster.address, properties: [:], waitMax: patienceMax)
            let snapshot = try reader.snapshot(
                of: ["g": ["t"], "h": ["t", "u"], "nothing": ["missing"]], others: true)
            #expect(snapshot.groups.map(\.name) == ["g", "h"])
            #expect(snapshot.groups.map(\.offsets.count) == [3, 4])
            #expect(snapshot.groups.allSatisfy { $0.offsets.values.allSatisfy { $0 == nil } && $0.memberCount == nil })
            #expect(snapshot.available.count == 4)
            // Missing topics are reported.
            #expect(snapshot.problems.keys.sorted() == ["topics"] && "\(snapshot.problems)".contains("missing"))
            #expect(snapshot.available.filter { $0.key.topic == "t" }.values.map(\.upperBound).reduce(0, +) == 3)
            let written = try #require(snapshot.available.first { !$0.value.isEmpty })
            let times = try reader.writtenTimes(of: [written.key: written.value.lowerBound])
            #expect((0..<3_600_000).contains(snapshot.milliseconds - (times[written.key] ?? 0)))
        }
    }

    /// While messages are written and consumed, the reported lag lies between the offsets directly before and after.
    @Test func lagLiesBetweenSurroundingOffsets() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            let address = cluster.address
            let isOver = Flag()
            let flow = BackgroundThread {
                var producer = try Producer(brokers: address)
                var consumer = try Consumer(
                    brokers: address, group: "g", topics: ["t"],
                    properties: [
                        "session.timeout.ms": "4000", "heartbeat.interval.ms": "100", "auto.commit.interval.ms": "20",
                    ])
                while !isOver.isSet {
                    for _ in 0..<20 { try producer.send("t", key: [1], value: [0]) }
                    _ = producer.flush(waitMax: patienceMax)
                    let messages = try consumer.nextBatch(countMax: 30, waitMax: .milliseconds(5))
                    consumer.finish(messages)
                }
                consumer.close()
            }
            defer { isOver.set() }
            let admin = try Admin(brokers: address, waitMax: patienceMax)
            let reader = try LagReader(brokers: address, properties: [:], waitMax: patienceMax)
            func offsets() throws -> (committed: Int64, end: Int64) {
                let committed = try admin.committed(group: "g", [Self.partition])[Self.partition]
                return (committed ?? 0, try admin.watermarks(Self.partition).upperBound)
            }
            let end = ContinuousClock.now + patienceMax
            var moves = 0
            var last: Int64 = 0
            while moves < 20 {
                try #require(ContinuousClock.now < end)
                let before = try offsets()
                var history = LagHistory()
                history.take(try reader.snapshot(of: ["g": ["t"]], others: false))
                let after = try offsets()
                let lag = try #require(history.lags.first)
                let committed = lag.beginning.committed ?? 0
                #expect(before.committed <= committed && committed <= after.committed)
                #expect(before.end <= lag.beginning.end && lag.beginning.end <= after.end)
                #expect(lag.count == lag.beginning.end - committed)
                if committed > last { moves += 1 }
                last = committed
            }
            isOver.set()
            try flow.wait()
            let still = try offsets()
            var history = LagHistory()
            history.take(try reader.snapshot(of: ["g": ["t"]], others: false))
            #expect(history.lags.first?.count == still.end - still.committed)
        }
    }

    /// The age is the message's own, not the snapshot's.
    @Test func lagInSecondsIsTheMessageAge() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            let written = ContinuousClock.now
            try Self.produce(1, at: cluster.address)
            let reader = try LagReader(brokers: cluster.address, properties: [:], waitMax: patienceMax)
            var history = LagHistory()
            history.take(try reader.snapshot(of: ["g": ["t"]], others: false))
            history.learn(try reader.writtenTimes(of: history.offsetsOfUnknownAge(of: "g")), of: "g")
            for _ in 0..<3 {
                let before = ContinuousClock.now
                history.take(try reader.snapshot(of: ["g": ["t"]], others: false))
                let passed = ContinuousClock.now - written
                let seconds = try #require(history.lags.first?.age)
                guard case .exact(let age) = seconds else {
                    Issue.record("\(seconds)")
                    continue
                }
                // It was written, and the snapshot taken, between these.
                #expect(.seconds(age) <= passed + .milliseconds(1))
                #expect(.seconds(age) >= before - written - (passed - (before - written)) - .seconds(1))
            }
        }
    }

    /// Consecutive queries with changing offsets, by one client.
    @Test func writeTimesCanBeReadRepeatedly() async throws {
        try await withMockCluster(topics: ["t": 2]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            for key in 0..<UInt8(40) { try producer.send("t", key: [key], value: [key]) }
            let isFlushed = producer.flush(waitMax: patienceMax)
            #expect(isFlushed)
            let reader = try LagReader(brokers: cluster.address, properties: [:], waitMax: patienceMax)
            for offset in [Int64(0), 3, 1, 1] {
                let positionsToRead = Dictionary(
                    uniqueKeysWithValues: (0..<2).map { (TopicPartition(topic: "t", partition: $0), offset) })
                let times = try reader.writtenTimes(of: positionsToRead)
                #expect(times.count == 2 && times.values.allSatisfy { $0 > 0 })
                #expect(try reader.writtenTimes(of: [Self.partition: offset]).count == 1)
            }
            #expect(try reader.writtenTimes(of: [:]).isEmpty)
            #expect(try reader.writtenTimes(of: [Self.partition: 2]).count == 1)
        }
    }

    /// The mock cluster responds as Kafka before 2.4: a query for all offsets of a group returns none.
    @Test func unlistedOffsetsAreQueriedByPartition() async throws {
        try await withMockCluster(topics: ["t": 3]) { cluster in
            try Self.produce(3, at: cluster.address)
            let admin = try Admin(brokers: cluster.address, waitMax: patienceMax)
            let expected = [Self.partition: Int64(2), TopicPartition(topic: "t", partition: 2): 1]
            try admin.commit(group: "g", expected)
            #expect(try admin.committed(["g": nil])["g"]?.get() == [:])
            let reader = try LagReader(brokers: cluster.address, properties: [:], waitMax: patienceMax)
            let answers = try reader.committed(["g": nil, "other": nil], try admin.metadata())
            #expect(try answers["g"]?.get() == expected)
            #expect(try answers["other"]?.get() == [:])
        }
    }

    /// A frozen broker leads a partition of each topic; the other broker's partitions are reported nevertheless.
    @Test func frozenBrokerHidesNoOtherPartitions() async throws {
        try await withMockCluster(topics: ["t": 2, "u": 2], brokers: 2) { cluster in
            for topic in ["t", "u"] {
                for partition in [0, 1] as [Int32] { cluster.lead(topic, partition, by: partition + 1) }
            }
            cluster.coordinate("g", by: 1)
            let reader = try LagReader(brokers: cluster.address, properties: [:], waitMax: .seconds(2))
            #expect(try reader.snapshot(of: ["g": ["t", "u"]], others: false).available.count == 4)
            cluster.setRoundTrip(milliseconds: 60_000, of: 2)
            // Cluster-wide queries may also go to the frozen broker.
            var answer: Result<LagSnapshot, any Error>?
            for _ in 0..<20 where (try? answer?.get())?.available.isEmpty ?? true {
                answer = Result { try reader.snapshot(of: ["g": ["t", "u"]], others: false) }
            }
            let seen = try #require(try answer?.get())
            #expect(Set(seen.available.keys) == [Self.first("t"), Self.first("u")], "\(seen)")
            #expect(seen.problems["broker 2"] != nil, "\(seen.problems)")
        }
    }

    private static func first(_ topic: String) -> TopicPartition { TopicPartition(topic: topic, partition: 0) }

    @Test func unavailableBrokersAreAnError() throws {
        let reader = try LagReader(brokers: "127.0.0.1:1", properties: [:], waitMax: .milliseconds(200))
        #expect(throws: KafkaError.self) { _ = try reader.snapshot(of: ["g": ["t"]], others: false) }
    }
}

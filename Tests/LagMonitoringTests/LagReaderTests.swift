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
    private static let place = TopicPartition(topic: "t", partition: 0)

    private static func produce(_ count: Int, at address: String) throws {
        var producer = try Producer(brokers: address)
        for number in 0..<count { try producer.send("t", key: [1], value: [UInt8(truncatingIfNeeded: number)]) }
        let isFlushed = producer.flush(waitMax: patienceMax)
        #expect(isFlushed)
    }

    @Test func aLookTellsWhatBrokersSay() async throws {
        try await withMockCluster(topics: ["t": 3, "u": 1]) { cluster in
            try Self.produce(3, at: cluster.address)
            let reader = try LagReader(brokers: cluster.address, properties: [:], waitMax: patienceMax)
            let look = try reader.look(at: ["g": ["t"], "h": ["t", "u"], "nothing": ["missing"]], others: true)
            #expect(look.groups.map(\.name) == ["g", "h"])
            #expect(look.groups.map(\.offsets.count) == [3, 4])
            #expect(look.groups.allSatisfy { $0.offsets.values.allSatisfy { $0 == nil } && $0.memberCount == nil })
            #expect(look.available.count == 4)
            // What is not there is said.
            #expect(look.problems.keys.sorted() == ["topics"] && "\(look.problems)".contains("missing"))
            #expect(look.available.filter { $0.key.topic == "t" }.values.map(\.upperBound).reduce(0, +) == 3)
            let written = try #require(look.available.first { !$0.value.isEmpty })
            let times = try reader.writtenTimes(of: [written.key: written.value.lowerBound])
            #expect((0..<3_600_000).contains(look.milliseconds - (times[written.key] ?? 0)))
        }
    }

    /// While messages are written and finished, what is told lies between what brokers say just before and just after.
    @Test func aLagLiesBetweenTheOffsetsAroundIt() async throws {
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
                let committed = try admin.committed(group: "g", [Self.place])[Self.place]
                return (committed ?? 0, try admin.watermarks(Self.place).upperBound)
            }
            let end = ContinuousClock.now + patienceMax
            var moves = 0
            var last: Int64 = 0
            while moves < 20 {
                try #require(ContinuousClock.now < end)
                let before = try offsets()
                var history = LagHistory()
                history.take(try reader.look(at: ["g": ["t"]], others: false))
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
            history.take(try reader.look(at: ["g": ["t"]], others: false))
            #expect(history.lags.first?.count == still.end - still.committed)
        }
    }

    /// The age is the message's own, not that of the look.
    @Test func secondsAreTheTrueAge() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            let written = ContinuousClock.now
            try Self.produce(1, at: cluster.address)
            let reader = try LagReader(brokers: cluster.address, properties: [:], waitMax: patienceMax)
            var history = LagHistory()
            history.take(try reader.look(at: ["g": ["t"]], others: false))
            history.learn(try reader.writtenTimes(of: history.unknownAges(of: "g")), of: "g")
            for _ in 0..<3 {
                let before = ContinuousClock.now
                history.take(try reader.look(at: ["g": ["t"]], others: false))
                let passed = ContinuousClock.now - written
                let seconds = try #require(history.lags.first?.age)
                guard case .exact(let age) = seconds else {
                    Issue.record("\(seconds)")
                    continue
                }
                // It was written and looked at between these.
                #expect(.seconds(age) <= passed + .milliseconds(1))
                #expect(.seconds(age) >= before - written - (passed - (before - written)) - .seconds(1))
            }
        }
    }

    /// Looks that follow one another, of places that change, by one client.
    @Test func timesAreReadAgainAndAgain() async throws {
        try await withMockCluster(topics: ["t": 2]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            for key in 0..<UInt8(40) { try producer.send("t", key: [key], value: [key]) }
            let isFlushed = producer.flush(waitMax: patienceMax)
            #expect(isFlushed)
            let reader = try LagReader(brokers: cluster.address, properties: [:], waitMax: patienceMax)
            for offset in [Int64(0), 3, 1, 1] {
                let asked = Dictionary(
                    uniqueKeysWithValues: (0..<2).map { (TopicPartition(topic: "t", partition: $0), offset) })
                let times = try reader.writtenTimes(of: asked)
                #expect(times.count == 2 && times.values.allSatisfy { $0 > 0 })
                #expect(try reader.writtenTimes(of: [Self.place: offset]).count == 1)
            }
            #expect(try reader.writtenTimes(of: [:]).isEmpty)
            #expect(try reader.writtenTimes(of: [Self.place: 2]).count == 1)
        }
    }

    /// The mock cluster answers like Kafka before 2.4: when asked for all that a group has committed, with nothing.
    @Test func groupsThatAreNotToldAreAskedByPartitions() async throws {
        try await withMockCluster(topics: ["t": 3]) { cluster in
            try Self.produce(3, at: cluster.address)
            let admin = try Admin(brokers: cluster.address, waitMax: patienceMax)
            let wanted = [Self.place: Int64(2), TopicPartition(topic: "t", partition: 2): 1]
            try admin.commit(group: "g", wanted)
            #expect(try admin.committed(["g": nil])["g"]?.get() == [:])
            let reader = try LagReader(brokers: cluster.address, properties: [:], waitMax: patienceMax)
            let answers = try reader.committed(["g": nil, "other": nil], try admin.metadata())
            #expect(try answers["g"]?.get() == wanted)
            #expect(try answers["other"]?.get() == [:])
        }
    }

    /// A broker that was frozen leads a partition of each topic: what the other leads is told all the same.
    @Test func oneBrokerThatHangsHidesNoOthersPartitions() async throws {
        try await withMockCluster(topics: ["t": 2, "u": 2], brokers: 2) { cluster in
            for topic in ["t", "u"] {
                for partition in [0, 1] as [Int32] { cluster.lead(topic, partition, by: partition + 1) }
            }
            cluster.coordinate("g", by: 1)
            let reader = try LagReader(brokers: cluster.address, properties: [:], waitMax: .seconds(2))
            #expect(try reader.look(at: ["g": ["t", "u"]], others: false).available.count == 4)
            cluster.setRoundTrip(milliseconds: 60_000, of: 2)
            // What any broker may tell, the one that hangs is asked for too.
            var answer: Result<LagLook, any Error>?
            for _ in 0..<20 where (try? answer?.get())?.available.isEmpty ?? true {
                answer = Result { try reader.look(at: ["g": ["t", "u"]], others: false) }
            }
            let seen = try #require(try answer?.get())
            #expect(Set(seen.available.keys) == [Self.first("t"), Self.first("u")], "\(seen)")
            #expect(seen.problems["broker 2"] != nil, "\(seen.problems)")
        }
    }

    private static func first(_ topic: String) -> TopicPartition { TopicPartition(topic: topic, partition: 0) }

    @Test func brokersThatDoNotAnswerAreAnError() throws {
        let reader = try LagReader(brokers: "127.0.0.1:1", properties: [:], waitMax: .milliseconds(200))
        #expect(throws: KafkaError.self) { _ = try reader.look(at: ["g": ["t"]], others: false) }
    }
}

import Kafka
import TestSupport
import Testing

@Suite(.ownThreads) struct RebalanceTests {
    @Test func partitionsFollowJoiningAndLeavingConsumer() async throws {
        try await withMockCluster(topics: ["t": 4]) { cluster in
            let all = Set((0..<4).map { TopicPartition(topic: "t", partition: $0) })
            var first = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            try wait { try first.poll().count == 4 }
            var changes = first.takeAssignmentChanges()
            #expect(Set(changes) == Set(all.map { AssignmentChange.assigned($0) }))

            var second = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            try second.pauseAll()
            try wait {
                let retained = try first.poll()
                return try second.poll().union(retained) == all && retained.count == 2
            }
            changes = first.takeAssignmentChanges()
            // Cooperative: retained partitions are not affected.
            #expect(changes.count == 2)
            #expect(Set(changes) == Set(second.assignment.map { AssignmentChange.revoked($0) }))

            second.close()
            try wait { try first.poll() == all }
            #expect(first.takeAssignmentChanges().count == 2)
        }
    }
}

extension RebalanceTests {
    /// librdkafka keeps a revoked partition paused; after `resumeAll` it must be read again.
    @Test func reassignedPartitionsDeliverAfterResumeAll() async throws {
        try await withMockCluster(topics: ["t": 4]) { cluster in
            var producer = try Producer(brokers: cluster.address)
            for number in 0..<100 {
                try producer.send("t", key: Array("\(number)".utf8), value: [1], tag: UInt64(number))
            }
            producer.expectFlushed()
            let written = Dictionary(grouping: producer.deliveries(waitMax: .zero), by: \.topicPartition.partition)
                .mapValues(\.count)
            #expect(written.count == 4)

            var first = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            try first.pauseAll()
            try wait { try first.poll().count == 4 && first.nextOffsets.values.allSatisfy { $0 != nil } }
            try first.waitForSilence(batchCount: 5)

            var second = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            try second.pauseAll()
            try wait {
                let retained = try first.poll()
                return try second.poll().count == 2 && retained.count == 2
            }
            let retained = first.assignment
            second.close()

            // No offset of the reassigned partitions was committed: a message may be delivered twice.
            let expected = written.filter { !retained.contains(TopicPartition(topic: "t", partition: $0.key)) }
            var counts: [Int32: Int] = [:]
            try wait {
                if first.assignment.count == 4 { try first.resumeAll() }
                for message in try first.nextBatch(countMax: 10, waitMax: .milliseconds(20)) {
                    counts[message.partition, default: 0] += 1
                }
                return expected.allSatisfy { counts[$0.key] ?? 0 >= $0.value }
            }
        }
    }
}

extension Consumer {
    fileprivate mutating func poll() throws -> Set<TopicPartition> {
        _ = try nextBatch(countMax: 10, waitMax: .milliseconds(20))
        return assignment
    }
}

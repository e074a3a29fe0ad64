import Kafka
import TestSupport
import Testing

@Suite struct RebalanceTests {
    @Test func partitionsMoveToAConsumerThatJoinsAndComeBackWhenItLeaves() async throws {
        try await withMockCluster(topics: ["t": 4]) { cluster in
            let all = Set((0..<4).map { TopicPartition(topic: "t", partition: $0) })
            var first = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            try wait { try first.poll().count == 4 }
            var changes = first.takeAssignmentChanges()
            #expect(Set(changes) == Set(all.map { AssignmentChange.assigned($0) }))

            var second = try Consumer(brokers: cluster.address, group: "g", topics: ["t"], properties: fastGroup)
            try second.pauseAll()
            try wait {
                let kept = try first.poll()
                return try second.poll().union(kept) == all && kept.count == 2
            }
            changes = first.takeAssignmentChanges()
            // Cooperative: what stays is not even touched.
            #expect(changes.count == 2)
            #expect(Set(changes) == Set(second.assignment.map { AssignmentChange.revoked($0) }))

            second.close()
            try wait { try first.poll() == all }
            #expect(first.takeAssignmentChanges().count == 2)
        }
    }
}

extension Consumer {
    fileprivate mutating func poll() throws -> Set<TopicPartition> {
        _ = try nextBatch(countMax: 10, waitMax: .milliseconds(20))
        return assignment
    }
}

import Kafka
import Synchronization
import TestSupport
import Testing

/// Members that restart from the beginning of their partitions while the group is rebalancing.
@Suite(.ownThreads) struct RecommitTests {
    private struct Member {
        var assignment: Set<TopicPartition> = []
        var pending: Set<TopicPartition> = []
        var round = 0
        /// The number of partitions that librdkafka gave up because of a response of the coordinator.
        var lostCount = 0
    }

    /// The state shared by the members and the test.
    private final class Group: Sendable {
        let members = Mutex([Member](repeating: Member(), count: 4))
        let round = Mutex(0)
        let isOver = Mutex(false)
    }

    /// In every phase each member recommits the beginning of each of its partitions, as after the broker lost its
    /// content, and one member rejoins.
    @Test func groupStabilisesWhileMembersRecommit() async throws {
        try await withMockCluster(topics: ["t": 8, "u": 3]) { cluster in
            let group = Group()
            let address = cluster.address
            let threads = (0..<4).map { number in
                BackgroundThread { try Self.run(number, of: group, at: address) }
            }
            defer {
                group.isOver.withLock { $0 = true }
                for thread in threads { try? thread.wait() }
            }
            for round in 0..<3 {
                group.round.withLock { $0 = round }
                try wait {
                    group.members.withLock { members in
                        members.reduce(0) { $0 + $1.assignment.count } == 11
                            && members.allSatisfy {
                                $0.round == round && $0.pending.isEmpty && !$0.assignment.isEmpty
                            }
                    }
                }
            }
            let lostCount = group.members.withLock { $0.reduce(0) { $0 + $1.lostCount } }
            // Single members may coincide with the start of a rebalance, but none repeatedly.
            #expect(lostCount <= 11 * 3)
        }
    }

    private static func run(_ number: Int, of group: Group, at address: String) throws {
        var consumer = try Consumer(brokers: address, group: "g", topics: ["t", "u"], properties: fastGroup)
        var member = Member()
        while !group.isOver.withLock({ $0 }) {
            let round = group.round.withLock { $0 }
            if round != member.round {
                member.round = round
                member.pending = member.assignment
                for partition in member.pending { consumer.recommit(partition, from: 0) }
                if round % 4 == number {
                    consumer.close()
                    consumer = try Consumer(brokers: address, group: "g", topics: ["t", "u"], properties: fastGroup)
                    member.pending = []
                }
            }
            _ = try consumer.nextBatch(countMax: 10, waitMax: .milliseconds(20))
            for change in consumer.takeAssignmentChanges() {
                if case .lost = change { member.lostCount += 1 }
                if case .assigned(let partition) = change {
                    member.pending.insert(partition)
                    consumer.recommit(partition, from: 0)
                } else {
                    member.pending.remove(change.partition)
                }
            }
            member.pending.subtract(consumer.takeRecommitted())
            member.assignment = consumer.assignment
            let snapshot = member
            group.members.withLock { $0[number] = snapshot }
        }
        consumer.close()
    }
}

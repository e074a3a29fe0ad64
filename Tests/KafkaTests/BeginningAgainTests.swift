import Kafka
import Synchronization
import TestSupport
import Testing

/// Members that go back to the beginning of what they got, while the group still shares out its partitions.
@Suite(.ownThreads) struct BeginningAgainTests {
    private struct Member {
        var assignment: Set<TopicPartition> = []
        var pending: Set<TopicPartition> = []
        var round = 0
        /// Partitions that librdkafka gave up for an answer of the coordinator.
        var lostCount = 0
    }

    /// What the members and the test tell each other.
    private final class Group: Sendable {
        let members = Mutex([Member](repeating: Member(), count: 4))
        let round = Mutex(0)
        let isOver = Mutex(false)
    }

    /// Each has to commit the beginning of each of its partitions, as after the broker lost its content, in every
    /// round; and in every round one of them joins anew.
    @Test func membersThatCommitMeanwhileComeToRest() async throws {
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
            // One at a time may meet the beginning of a rebalance: none goes on doing so.
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
                for place in member.pending { consumer.commitAnew(place, from: 0) }
                if round % 4 == number {
                    consumer.close()
                    consumer = try Consumer(brokers: address, group: "g", topics: ["t", "u"], properties: fastGroup)
                    member.pending = []
                }
            }
            _ = try consumer.nextBatch(countMax: 10, waitMax: .milliseconds(20))
            for change in consumer.takeAssignmentChanges() {
                if case .lost = change { member.lostCount += 1 }
                if case .assigned(let place) = change {
                    member.pending.insert(place)
                    consumer.commitAnew(place, from: 0)
                } else {
                    member.pending.remove(change.partition)
                }
            }
            member.pending.subtract(consumer.takeCommittedAnew())
            member.assignment = consumer.assignment
            let told = member
            group.members.withLock { $0[number] = told }
        }
        consumer.close()
    }
}

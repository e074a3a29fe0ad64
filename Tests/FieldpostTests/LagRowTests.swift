import Kafka
import TestSupport
import Testing

@testable import Fieldpost
@testable import LagMonitoring

/// The rows of `fieldpost lag`.
@Suite(.ownThreads) struct LagRowTests {
    private static func partition(
        _ number: Int32, of group: String = "entry-submitter", lag: Int64, expired: Int64 = 0, age: Double? = nil,
        status: LagStatus? = nil, rates: (in: Double, out: Double)? = nil
    ) -> LagRow {
        let partition = TopicPartition(topic: "entry.events", partition: number)
        let beginning = Beginning(
            partition: partition, committed: 10, available: (10 + expired)..<(10 + expired + lag))
        return LagRow(
            partition, group: group,
            PartitionLag(
                group: group, partition: partition, beginning: beginning, hasConsumer: true,
                age: age.map { .exact(seconds: $0) }, status: status, inPerSecond: rates?.in, outPerSecond: rates?.out))
    }

    @Test func sumHasWorstStatusAndOldestAge() {
        let sums = LagRow.sums(of: [
            Self.partition(0, lag: 3, age: 4, status: .warn, rates: (1, 2)),
            Self.partition(1, lag: 9, age: 60, status: .stall, rates: (1, 4)), Self.partition(2, lag: 0, status: .ok),
        ])
        #expect(sums.count == 1)
        #expect(sums[0].lag == 12 && sums[0].oldestAgeMs == 60_000 && sums[0].status == "STALL")
        #expect(sums[0].behindCount == 2 && sums[0].partitionCount == 3 && sums[0].partition == nil)
        // 12 messages, of which four more are committed than written in each second.
        #expect(sums[0].rate == 6 && sums[0].inRate == 2 && sums[0].drainMs == 3_000)
    }

    @Test func unknownPartitionIsBehind() {
        let unknown = LagRow(TopicPartition(topic: "entry.events", partition: 3), group: "entry-submitter", nil)
        #expect(unknown.isBehind && unknown.lag == nil)
        let sum = LagRow(sum: [Self.partition(0, lag: 5), unknown])
        #expect(sum.lag == 5 && sum.unknownCount == 1 && sum.isBehind)
        #expect(LagRow(sum: [unknown]).lag == nil)
        #expect(!LagRow(sum: [Self.partition(0, lag: 0)]).isBehind)
    }

    @Test func worstRowsAreFirst() {
        let rows = [
            Self.partition(0, of: "idle", lag: 0, status: .ok), Self.partition(0, of: "small", lag: 2, status: .ok),
            Self.partition(0, of: "large", lag: 500, status: .ok),
            Self.partition(0, of: "stopped", lag: 1, status: .stop),
            Self.partition(0, of: "expired", lag: 0, expired: 7),
            Self.partition(0, of: "slow", lag: 900, status: .warn),
        ]
        let order = ["expired", "stopped", "slow", "large", "small", "idle"]
        #expect(LagRow.worstFirst(rows).map(\.group) == order)
        #expect(LagRow.worstFirst(rows.reversed()).map(\.group) == order)
    }
}

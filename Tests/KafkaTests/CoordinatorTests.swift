internal import CKafka
import TestSupport
import Testing

@testable import Kafka

/// Group coordinators that move, disappear and return. Each of these conditions ended the process before.
@Suite struct CoordinatorTests {
    private static let partition = TopicPartition(topic: "t", partition: 0)
    private static let wanted = [partition: Int64(0)]

    private static func committed(_ admin: borrowing Admin) -> Result<[TopicPartition: Int64], KafkaError>? {
        let answers = try? admin.committed(["g": [partition]])
        return answers?["g"]
    }

    /// librdkafka dereferences a null pointer when a client without a group gets NOT_COORDINATOR.
    @Test(arguments: [14, 15, 16] as [Int32]) func aMovedCoordinatorIsFoundWithinTheSameCall(code: Int32) async throws {
        try await withMockCluster(topics: ["t": 1], brokers: 2) { cluster in
            cluster.coordinate("g", by: 1)
            let admin = try Admin(brokers: cluster.address, waitMax: patienceMax)
            try admin.commit(group: "g", Self.wanted)
            for broker in [2, 1, 2] as [Int32] {
                cluster.coordinate("g", by: broker)
                // The mock cluster answers for any coordinator; this is what a real one answers that is none any more.
                cluster.spoil(.offsetFetch, with: [code])
                #expect(try Self.committed(admin)?.get() == Self.wanted)
            }
        }
    }

    /// librdkafka uses an admin request that timed out before its coordinator was connected as soon as that is.
    @Test func aRequestThatTimedOutSurvivesItsCoordinatorsReturn() async throws {
        try await withMockCluster(topics: ["t": 1], brokers: 2) { cluster in
            cluster.coordinate("g", by: 2)
            try Admin(brokers: cluster.address, waitMax: patienceMax).commit(group: "g", Self.wanted)
            // The client below has both brokers' addresses, and has no request in the coordinator that is unavailable.
            let admin = try Admin(brokers: cluster.address, waitMax: .milliseconds(300))
            cluster.setDown(2)
            for _ in 0..<3 {
                guard case .failure(let error)? = Self.committed(admin) else {
                    Issue.record("the coordinator is unavailable")
                    return
                }
                #expect(error.isTimeout, "\(error)")
            }
            cluster.setUp(2)
            try wait { (try? Self.committed(admin)?.get()) == Self.wanted }
        }
    }

    /// Each error is reported for the group that it is about.
    @Test func eachRefusedGroupHasItsOwnError() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            let admin = try Admin(brokers: cluster.address, waitMax: patienceMax)
            try admin.commit(group: "g", Self.wanted)
            cluster.spoil(.offsetFetch, with: [30, 24])  // GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID
            let answers = try admin.committed(["g": [Self.partition], "h": [Self.partition]])
            let codes = answers.values.map { answer -> Int32 in
                if case .failure(let error) = answer { error.code } else { 0 }
            }
            #expect(codes.sorted() == [24, 30], "\(answers)")
        }
    }

    /// A response that belongs to no request is neither read nor counted.
    @Test func responseWithoutItsRequestIsSkipped() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            let coordinators = CoordinatorClient(brokers: cluster.address, properties: [:])
            let answers = try coordinators.request(
                RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, of: ["g"], waitMax: patienceMax,
                send: { group, client, options, queue in
                    var request = unsafe rd_kafka_ListConsumerGroupOffsets_new(group, nil)
                    // Without options it carries no number of a group.
                    unsafe rd_kafka_ListConsumerGroupOffsets(client.pointer, &request, 1, nil, queue.pointer)
                    unsafe rd_kafka_ListConsumerGroupOffsets(
                        client.pointer, &request, 1, options.pointer, queue.pointer)
                    unsafe rd_kafka_ListConsumerGroupOffsets_destroy(request)
                },
                read: { _ in true })
            #expect(try answers["g"]?.get() == true)
        }
    }
}

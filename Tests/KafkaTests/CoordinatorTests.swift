internal import CKafka
import TestSupport
import Testing

@testable import Kafka

/// Group coordinators that move, disappear and return. Each of these conditions crashed the process before.
@Suite(.ownThreads) struct CoordinatorTests {
    private static let partition = TopicPartition(topic: "t", partition: 0)
    private static let offsets = [partition: Int64(0)]

    private static func committed(_ admin: borrowing Admin) -> Result<[TopicPartition: Int64], KafkaError>? {
        let responses = try? admin.committed(["g": [partition]])
        return responses?["g"]
    }

    /// librdkafka dereferences a null pointer when a client without a group gets NOT_COORDINATOR.
    @Test(arguments: [14, 15, 16] as [Int32]) func movedCoordinatorIsLocatedWithinTheSameCall(code: Int32) async throws
    {
        try await withMockCluster(topics: ["t": 1], brokers: 2) { cluster in
            cluster.coordinate("g", by: 1)
            let admin = try Admin(brokers: cluster.address, waitMax: patienceMax)
            try admin.commit(group: "g", Self.offsets)
            for broker in [2, 1, 2] as [Int32] {
                cluster.coordinate("g", by: broker)
                // The mock cluster responds for any coordinator; this is the response of a real broker that is not the
                // coordinator.
                cluster.spoil(.offsetFetch, with: [code])
                #expect(try Self.committed(admin)?.get() == Self.offsets)
            }
        }
    }

    /// librdkafka uses an admin request after it was freed, if it timed out before its coordinator was connected.
    @Test func timedOutRequestSurvivesReturnOfCoordinator() async throws {
        try await withMockCluster(topics: ["t": 1], brokers: 2) { cluster in
            cluster.coordinate("g", by: 2)
            try Admin(brokers: cluster.address, waitMax: patienceMax).commit(group: "g", Self.offsets)
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
            try wait { (try? Self.committed(admin)?.get()) == Self.offsets }
        }
    }

    /// Each error is reported for its own group.
    @Test func eachRejectedGroupHasItsOwnError() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            let admin = try Admin(brokers: cluster.address, waitMax: patienceMax)
            try admin.commit(group: "g", Self.offsets)
            cluster.spoil(.offsetFetch, with: [30, 24])  // GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID
            let responses = try admin.committed(["g": [Self.partition], "h": [Self.partition]])
            let codes = responses.values.map { response -> Int32 in
                if case .failure(let error) = response { error.code } else { 0 }
            }
            #expect(codes.sorted() == [24, 30], "\(responses)")
        }
    }

    /// A response that belongs to no request is neither read nor counted.
    @Test func responseWithoutItsRequestIsSkipped() async throws {
        try await withMockCluster(topics: ["t": 1]) { cluster in
            let coordinators = CoordinatorClient(brokers: cluster.address, properties: [:])
            let responses = try coordinators.request(
                RD_KAFKA_ADMIN_OP_LISTCONSUMERGROUPOFFSETS, of: ["g"], waitMax: patienceMax,
                send: { group, client, options, queue in
                    var request = unsafe rd_kafka_ListConsumerGroupOffsets_new(group, nil)
                    // Without options it carries no group's index.
                    unsafe rd_kafka_ListConsumerGroupOffsets(client.pointer, &request, 1, nil, queue.pointer)
                    unsafe rd_kafka_ListConsumerGroupOffsets(
                        client.pointer, &request, 1, options.pointer, queue.pointer)
                    unsafe rd_kafka_ListConsumerGroupOffsets_destroy(request)
                },
                read: { _ in true })
            #expect(try responses["g"]?.get() == true)
        }
    }
}

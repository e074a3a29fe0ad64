internal import CKafka

@testable import Kafka

extension Producer {
    /// Drops all queued and in-flight messages; each is reported with an error. In-flight messages may have been
    /// written.
    mutating func purge() {
        // Without waiting for the brokers' threads, which has no timeout.
        let all = RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING
        unsafe rd_kafka_purge(client.pointer, all)
    }
}

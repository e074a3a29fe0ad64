internal import CKafka
package import Essentials

extension Wakeup {
    /// - Throws: `_FAIL` if the process has no free file descriptor.
    package static func make() throws(KafkaError) -> Wakeup {
        do { return try Wakeup() } catch { throw KafkaError(RD_KAFKA_RESP_ERR__FAIL, error.description) }
    }

    /// Makes librdkafka signal it when the queue becomes non-empty.
    func attach(to queue: OpaquePointer) {
        let one: UInt8 = 1
        unsafe withUnsafeBytes(of: one) {
            unsafe rd_kafka_queue_io_event_enable(queue, writeEnd, $0.baseAddress, $0.count)
        }
    }
}

extension Duration {
    /// Milliseconds for librdkafka: never negative (an infinite timeout), at most 2,000,000,000.
    var millisecondsRoundedUp: Int32 { Int32(max(0, min(milliseconds(roundedUp: true), 2_000_000_000))) }
}

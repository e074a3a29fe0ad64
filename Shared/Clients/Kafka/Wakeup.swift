internal import CKafka
internal import Glibc

/// Wakes a loop that waits for Kafka and other events.
///
/// librdkafka signals it when a client's queue becomes non-empty; any thread may signal it. Signals are not counted:
/// several wake the loop once. It wraps Linux's eventfd(2).
package final class Wakeup: Sendable {
    private let descriptor: Int32

    /// - Throws: `_FAIL` if the process has no free file descriptor.
    package init() throws(KafkaError) {
        descriptor = eventfd(0, Int32(EFD_NONBLOCK) | Int32(EFD_CLOEXEC))
        if descriptor < 0 { throw KafkaError(RD_KAFKA_RESP_ERR__FAIL, "eventfd: error \(errno)") }
    }

    deinit { close(descriptor) }

    /// Interrupts the current or the next wait.
    package func signal() {
        var one: UInt64 = 1
        _ = unsafe write(descriptor, &one, MemoryLayout.size(ofValue: one))
    }

    /// Clears the signal.
    ///
    /// - Returns: Whether it was signalled.
    @discardableResult
    package func drain() -> Bool {
        var count: UInt64 = 0
        return unsafe read(descriptor, &count, MemoryLayout.size(ofValue: count)) > 0
    }

    /// Returns immediately when signalled, otherwise after `waitMax`, and clears the signal.
    ///
    /// - Returns: Whether it was signalled.
    @discardableResult
    package func wait(atMost waitMax: Duration) -> Bool {
        var request = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return unsafe poll(&request, 1, waitMax.millisecondsRoundedUp) > 0 && drain()
    }

    func attach(to queue: OpaquePointer) {
        let one: UInt64 = 1
        unsafe withUnsafeBytes(of: one) {
            unsafe rd_kafka_queue_io_event_enable(queue, descriptor, $0.baseAddress, $0.count)
        }
    }
}

extension Duration {
    /// Milliseconds for librdkafka and poll(2): never negative (an infinite timeout), at most 2,000,000,000.
    var millisecondsRoundedUp: Int32 {
        let (seconds, attoseconds) = components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        guard seconds < 2_000_000 else { return 2_000_000_000 }
        return Int32(seconds) * 1000 + Int32((attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
    }
}

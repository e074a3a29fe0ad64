import Kafka
import TestSupport
import Testing

let deadlineMax = patienceMax

/// Short group timeouts: the mock cluster's first join takes 3 s, a rebalance the session timeout less 1 s. A session
/// below 3 s never joins: the mock cluster expires the member that waits for the join.
let fastGroup = [
    "session.timeout.ms": "4000", "heartbeat.interval.ms": "100", "auto.commit.interval.ms": "100",
    "reconnect.backoff.max.ms": "100", "fetch.wait.max.ms": "10",
]

struct TookTooLong: Error {}

/// Repeats `step` until it returns true.
func wait(_ step: () throws -> Bool) throws {
    let end = ContinuousClock.now + deadlineMax
    while try !step() {
        guard ContinuousClock.now < end else { throw TookTooLong() }
    }
}

extension Consumer {
    /// Receives batches until `countMin` messages have arrived.
    mutating func receive(_ countMin: Int, batchMax: Int = 500) throws -> [Message] {
        var messages: [Message] = []
        let end = ContinuousClock.now + deadlineMax
        while messages.count < countMin {
            guard ContinuousClock.now < end else { throw TookTooLong() }
            messages += try nextBatch(countMax: batchMax, waitMax: .milliseconds(50))
        }
        return messages
    }
}

extension Consumer {
    mutating func expectSilence(batchCount: Int) throws {
        for _ in 0..<batchCount {
            let batch = try nextBatch(countMax: 10, waitMax: .milliseconds(50))
            #expect(batch.isEmpty, "\(batch.map { "\($0.offset): \($0.text)" })")
        }
    }
}

extension Consumer {
    /// Waits until `batchCount` consecutive batches were empty.
    mutating func waitForSilence(batchCount: Int) throws {
        var silentCount = 0
        try wait {
            silentCount = try nextBatch(countMax: 10, waitMax: .milliseconds(50)).isEmpty ? silentCount + 1 : 0
            return silentCount == batchCount
        }
    }
}

extension Producer {
    mutating func expectFlushed() {
        let isFlushed = flush(waitMax: deadlineMax)
        #expect(isFlushed)
    }
}

/// Writes `values` with the key "k", and waits for all reports.
@discardableResult
func produce(_ values: [String], to topic: String = "t", at address: String) throws -> [Delivery] {
    var producer = try Producer(brokers: address)
    for (index, value) in values.enumerated() {
        try producer.send(topic, key: Array("k".utf8), value: Array(value.utf8), tag: UInt64(index))
    }
    producer.expectFlushed()
    return producer.deliveries(waitMax: .zero)
}

extension Message {
    var text: String { value.map { String(decoding: $0, as: UTF8.self) } ?? "nil" }
}

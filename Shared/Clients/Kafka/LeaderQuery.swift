internal import CKafka
internal import Glibc
import Synchronization

/// Offsets that leaders returned for their partitions.
package struct LeaderOffsets: Sendable {
    /// The offsets; partitions without a response are absent.
    package var offsets: [TopicPartition: Int64] = [:]
    /// The errors of leaders that did not respond in time.
    package var silent: [Int32: KafkaError] = [:]
    /// The errors of topics that a leader rejected.
    package var refused: [String: KafkaError] = [:]
}

/// A concurrent query of many leaders: a leader that does not respond does not delay the others.
///
/// librdkafka returns nothing for a query of several leaders if one of them does not respond. Therefore each leader is
/// queried by a separate call; the calls share one client, which is thread-safe.
@safe final class LeaderQuery {
    /// Maximum number of leaders that are queried concurrently.
    private static let concurrencyMax = 16

    private struct State {
        var waiting: [(leader: Int32, partitions: [TopicPartition])]
        var result = LeaderOffsets()
    }

    private let client: Client
    private let edge: Admin.PartitionEdge
    private let waitMax: Duration
    private let begin = ContinuousClock.now
    private let state: Mutex<State>

    init(
        _ client: Client, at edge: Admin.PartitionEdge, of partitions: [Int32: [TopicPartition]], waitMax: Duration
    ) {
        (self.client, self.edge, self.waitMax) = (client, edge, waitMax)
        state = Mutex(State(waiting: partitions.map { ($0.key, $0.value) }))
    }

    /// Queries the leaders and waits for them, at most twice `waitMax`. No query starts after `waitMax`.
    func run() -> LeaderOffsets {
        let concurrency = min(Self.concurrencyMax, state.withLock(\.waiting.count))
        // If a thread cannot be started, the others, including this one, query its leaders.
        let threads = (0..<max(0, concurrency - 1)).compactMap { _ in startThread() }
        queryWaiting()
        for thread in threads { pthread_join(thread, nil) }
        return state.withLock(\.result)
    }

    private func startThread() -> pthread_t? {
        var thread = pthread_t()
        // `run` retains this object until the thread has ended.
        let status = unsafe pthread_create(
            &thread, nil,
            { argument in
                guard let argument = unsafe argument else { return nil }
                unsafe Unmanaged<LeaderQuery>.fromOpaque(argument).takeUnretainedValue().queryWaiting()
                return nil
            }, Unmanaged.passUnretained(self).toOpaque())
        return status == 0 ? thread : nil
    }

    private func queryWaiting() {
        while ContinuousClock.now < begin + waitMax, let next = state.withLock({ $0.waiting.popLast() }) {
            query(next.leader, next.partitions)
        }
    }

    private func query(_ leader: Int32, _ partitions: [TopicPartition]) {
        do throws(KafkaError) {
            try add(partitions)
            return
        } catch {
            guard !error.isTimeout else { return note { $0.silent[leader] = error } }
        }
        // One rejected partition, such as one that has just moved, fails the query of all the leader's partitions.
        for (topic, partitions) in Dictionary(grouping: partitions, by: \.topic) {
            do throws(KafkaError) {
                try add(partitions)
            } catch {
                guard !error.isTimeout else { return note { $0.silent[leader] = error } }
                note { $0.refused[topic] = error }
            }
        }
    }

    private func add(_ partitions: [TopicPartition]) throws(KafkaError) {
        let wait = max(.zero, min(waitMax, begin + waitMax * 2 - .now))
        let offsets = try client.offsets(at: edge, of: partitions, waitMax: wait)
        note { $0.offsets.merge(offsets) { $1 } }
    }

    private func note(_ body: (inout LeaderOffsets) -> Void) { state.withLock { body(&$0.result) } }
}

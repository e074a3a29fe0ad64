internal import CKafka
internal import Glibc
import Synchronization

/// Offsets that leaders returned for the partitions that they lead.
package struct LeaderOffsets: Sendable {
    /// A partition without a response is absent.
    package var offsets: [TopicPartition: Int64] = [:]
    /// The leaders that did not respond in time, with the error.
    package var silent: [Int32: KafkaError] = [:]
    /// The topics that a leader refused, with the error.
    package var refused: [String: KafkaError] = [:]
}

/// A query of many leaders, several at a time: a leader that does not respond delays none of the others.
///
/// librdkafka reports nothing of a query of several leaders if one of them does not respond. So each leader gets a call
/// of its own; the calls share one client, which is safe to use from several threads.
@safe final class LeaderQuery {
    /// Maximum number of leaders that are queried at a time.
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

    /// Queries the leaders and waits for them, at most twice `waitMax`. After `waitMax` no other leader is queried.
    func run() -> LeaderOffsets {
        let concurrency = min(Self.concurrencyMax, state.withLock(\.waiting.count))
        // A thread that cannot be started leaves its leaders to the others; this thread is one of them.
        let threads = (0..<max(0, concurrency - 1)).compactMap { _ in startThread() }
        queryWaiting()
        for thread in threads { pthread_join(thread, nil) }
        return state.withLock(\.result)
    }

    private func startThread() -> pthread_t? {
        var thread = pthread_t()
        // `run` keeps this object until the thread has ended.
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
        // One partition that its leader refuses, as that has just moved, fails the query of all its partitions.
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

import AdminQueries
import Essentials
import Kafka
import Model

/// Adds the messages that Kafka still has to an object's trace.
struct KafkaTrace {
    /// Maximum number of messages that are scanned: the newest of the partition.
    static let messagesMax: Int64 = 200_000
    private static let waitMax = Duration.seconds(10)

    private let brokers: String
    private let properties: [String: String]

    init(_ options: BrokerOptions) throws { (brokers, properties) = try options.resolved() }

    /// Returns the trace with Kafka's messages. An unavailable broker becomes a gap of the trace.
    func added(to trace: ObjectTrace) throws -> ObjectTrace {
        guard let subject = EventSubject(trace.subject), let topic = subject.kind.row.route?.topic else {
            return ObjectTrace(
                environment: trace.environment, subject: trace.subject, hops: trace.hops,
                gaps: trace.gaps + ["its kind is not published to Kafka"])
        }
        var (hops, gaps) = (trace.hops, trace.gaps)
        do throws(KafkaError) {
            let admin = try Admin(brokers: brokers, properties: properties, waitMax: BrokerOptions.waitMax)
            guard let count = try admin.metadata().topics[topic.name] else { throw KafkaError(missing: [topic.name]) }
            let key = Array(subject.id.text.utf8)
            let number = TopicPartition.partition(ofKey: key, count: count)
            let partition = TopicPartition(topic: topic.name, partition: number)
            let scan = try KeyScan.run(
                key, in: partition, brokers: brokers, properties: properties, countMax: Self.messagesMax,
                waitMax: Self.waitMax)
            hops += scan.messages.filter { $0.headers["ce_subject"] == trace.subject }.map { hop($0, partition) }
            if scan.scanned.upperBound < scan.available.upperBound {
                gaps.append(
                    "\(partition): the messages from offset \(scan.scanned.upperBound) on were not read in time")
            }
            if scan.scanned.lowerBound > 0 {
                gaps.append(
                    "\(partition): messages before offset \(scan.scanned.lowerBound) were removed or not scanned")
            }
            for group in topic.consumers {
                guard let last = scan.messages.last else { break }
                let committed = try admin.committed([group: [partition]])[group]?.get()[partition]
                hops.append(finished(group, committed, last.offset, partition))
            }
        } catch {
            gaps.append("Kafka is unavailable: \(error)")
        }
        return ObjectTrace(
            environment: trace.environment, subject: trace.subject, hops: ObjectTrace.inOrder(hops), gaps: gaps)
    }

    private func hop(_ message: KeyScanMessage, _ partition: TopicPartition) -> ObjectTrace.Hop {
        ObjectTrace.Hop(
            at: message.milliseconds < 0 ? nil : Timestamp(millisecondsSinceEpoch: message.milliseconds),
            service: "change-relay", event: "published",
            text: message.isTombstone ? "published as deleted" : "published",
            position: message.headers["fieldpost-position"].flatMap { Int64($0) }, topic: partition.topic,
            partition: partition.partition, offset: message.offset, traceparent: message.headers["traceparent"])
    }

    private func finished(
        _ group: String, _ committed: Int64?, _ offset: Int64, _ partition: TopicPartition
    ) -> ObjectTrace.Hop {
        let isFinished = committed.map { $0 > offset } ?? false
        return ObjectTrace.Hop(
            at: nil, service: group, event: isFinished ? "finished" : "unfinished",
            text: isFinished
                ? "the group has committed all of its messages"
                : "the group has not committed its last message; its offset is "
                    + "\(committed.map(String.init) ?? "unset")",
            topic: partition.topic, partition: partition.partition, offset: committed)
    }
}

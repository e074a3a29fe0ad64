import AdminQueries
import Essentials
import Kafka
import Model

/// Adds to a story what Kafka still has of it.
struct TransportStory {
    /// Messages of the partition looked at, the newest.
    static let messagesMax: Int64 = 200_000
    private static let waitMax = Duration.seconds(10)

    private let brokers: String
    private let properties: [String: String]

    init(_ options: BrokerOptions) throws { (brokers, properties) = try options.resolved() }

    /// A broker that does not answer is a gap of the story.
    func told(_ story: Story) throws -> Story {
        guard let subject = EventSubject(story.subject), let topic = subject.kind.row.route?.topic else {
            return Story(
                environment: story.environment, subject: story.subject, hops: story.hops,
                gaps: story.gaps + ["its kind is not published: Kafka has nothing of it"])
        }
        var (hops, gaps) = (story.hops, story.gaps)
        do throws(KafkaError) {
            let admin = try Admin(brokers: brokers, properties: properties, waitMax: BrokerOptions.waitMax)
            guard let count = try admin.metadata().topics[topic.name] else { throw KafkaError(missing: [topic.name]) }
            let key = Array(subject.id.text.utf8)
            let number = TopicPartition.partition(ofKey: key, count: count)
            let place = TopicPartition(topic: topic.name, partition: number)
            let found = try KeyScan.run(
                key, in: place, brokers: brokers, properties: properties, countMax: Self.messagesMax,
                waitMax: Self.waitMax)
            hops += found.messages.filter { $0.headers["ce_subject"] == story.subject }.map { hop($0, place) }
            if found.scanned.upperBound < found.available.upperBound {
                gaps.append("\(place): the messages from offset \(found.scanned.upperBound) on were not read in time")
            }
            if found.scanned.lowerBound > 0 {
                gaps.append(
                    "\(place): messages before offset \(found.scanned.lowerBound) are gone, or were not looked at")
            }
            for group in topic.consumers {
                guard let last = found.messages.last else { break }
                let committed = try admin.committed([group: [place]])[group]?.get()[place]
                hops.append(finished(group, committed, last.offset, place))
            }
        } catch {
            gaps.append("Kafka does not tell: \(error)")
        }
        return Story(
            environment: story.environment, subject: story.subject, hops: Story.inOrder(hops), gaps: gaps)
    }

    private func hop(_ message: ScannedMessage, _ place: TopicPartition) -> Story.Hop {
        Story.Hop(
            at: message.milliseconds < 0 ? nil : Timestamp(millisecondsSinceEpoch: message.milliseconds),
            service: "change-relay", event: "published",
            text: message.isTombstone ? "published as deleted" : "published",
            position: message.headers["fieldpost-position"].flatMap { Int64($0) }, topic: place.topic,
            partition: place.partition, offset: message.offset, traceparent: message.headers["traceparent"])
    }

    private func finished(
        _ group: String, _ committed: Int64?, _ offset: Int64, _ place: TopicPartition
    ) -> Story.Hop {
        let isPast = committed.map { $0 > offset } ?? false
        return Story.Hop(
            at: nil, service: group, event: isPast ? "finished" : "unfinished",
            text: isPast
                ? "the group has finished all of its messages"
                : "the group has not finished its last message; it is at \(committed.map(String.init) ?? "no offset")",
            topic: place.topic, partition: place.partition, offset: committed)
    }
}

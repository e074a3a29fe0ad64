import Essentials
import FoundationEssentials
import Kafka
import KeyedWorker
import Model
import Postgres

/// Sending to the broker, and confirmations.
extension Relay {
    mutating func send(_ page: OutgoingPage) throws -> Int {
        guard var outlet = outlets[page.environment] else { return 0 }
        let now = Timestamp.now()
        let tag = Self.tag(page.environment, page.page)
        var deferredCount = 0
        for (index, item) in page.objects.enumerated() {
            if index % Self.bufferInterval == 0 { connection.bufferStarted() }
            let (row, topic) = (item.row, item.topic)
            let id: UUID = try row.value(3)
            if unwritable.contains(topic.name, key: id) {
                deferTopic(topic.name, in: page.environment)
                deferredCount += 1
                continue
            }
            let changedAt: Timestamp? = page.hasTimes ? try row.value(8) : nil
            var object = PublishedObject(
                realm: item.path, kind: item.kind, id: id, position: try row.value(0), editPosition: try row.value(4),
                time: changedAt ?? now, traceparent: page.hasTimes ? try row.optional(7) : nil)
            let span = beginSpan(of: &object)
            do {
                try unsafe row.withBytes(5) { json in
                    try unsafe outlet.send(object, to: topic, json: json, tag: tag, through: &producer)
                }
            } catch let error as KafkaError where error.advice != nil && !error.isFatal {
                reject(topic.name, error)
                deferTopic(topic.name, in: page.environment)
                deferredCount += 1
                continue
            }
            if let span {
                let subject = TraceSpan.Subject(kind: item.kind.rawValue, id: id, position: object.position)
                let environment = page.environment.rawValue
                spans[tag, default: []].append((span, .publish(topic: topic.name, environment: environment, subject)))
            }
        }
        outlets[page.environment] = outlet
        if deferredCount < page.objects.count { sentAt[tag] = .now }
        if deferredCount > 0 {
            progress[page.environment]?.confirm(deferredCount, page: page.page)
            takeConfirmed(of: page.environment)
        }
        return page.objects.count - deferredCount
    }

    /// Begins a span for the sending of an object whose change belongs to a recorded trace, and propagates it in the
    /// message.
    private func beginSpan(of object: inout PublishedObject) -> OpenSpan? {
        guard SpanRecorder.process.isOn, let traceparent = object.traceparent,
            let span = SpanRecorder.process.begin(TraceContext(traceparent))
        else { return nil }
        object.traceparent = span.context.text
        return span
    }

    private mutating func endSpans(_ tag: UInt64) {
        for (span, work) in spans.removeValue(forKey: tag) ?? [] { SpanRecorder.process.end(span, work) }
    }

    /// Defers a topic of which messages were not written: it is republished completely later.
    mutating func deferTopic(_ topic: String, in environment: EnvironmentID) {
        let topic = DeferredTopic(environment: environment, topic: topic)
        if deferred.insert(topic).inserted { newlyDeferred.insert(topic) }
    }

    /// Encodes environment and page in one number, which identifies the page in delivery reports.
    static func tag(_ environment: EnvironmentID, _ page: Int) -> UInt64 {
        UInt64(UInt32(bitPattern: environment.rawValue)) << 32 | UInt64(UInt32(truncatingIfNeeded: page))
    }

    static func environment(of tag: UInt64) -> EnvironmentID {
        EnvironmentID(rawValue: Int32(bitPattern: UInt32(truncatingIfNeeded: tag >> 32)))
    }

    /// Whether a message was not written because of its topic or partition only.
    private mutating func isUnwritable(_ error: KafkaError, _ delivery: Delivery) -> Bool {
        if error.isFatal || producer.fatalError != nil { return false }
        if unwritable.contains(delivery.topicPartition) { return true }
        if error.isTimeout, isLimitedToPartition(delivery) {
            unwritable.markUnresponsive(delivery.topicPartition)
            reportUnwritable()
        } else if error.advice != nil {
            reject(delivery.topicPartition.topic, error)
        }
        return unwritable.contains(delivery.topicPartition)
    }

    mutating func confirm(_ deliveries: [Delivery]) throws {
        if deliveries.isEmpty { return }
        if deliveries.contains(where: { $0.error == nil }) { lastConfirmed = .now }
        var counts: [UInt64: Int] = [:]
        // Reports arrive in runs per partition, whose last offset is looked up once per run.
        var run: (partition: TopicPartition, last: Int64)?
        for delivery in deliveries {
            counts[delivery.tag, default: 0] += 1
            if let error = delivery.error {
                guard isUnwritable(error, delivery) else { throw error }
                deferTopic(delivery.topicPartition.topic, in: Self.environment(of: delivery.tag))
                // It is unknown which message of the page it was.
                spans[delivery.tag] = nil
            }
            guard let offset = delivery.offset, offset >= 0 else { continue }
            if run?.partition != delivery.topicPartition {
                note(run)
                run = (delivery.topicPartition, offsets[delivery.topicPartition] ?? -1)
            }
            if let last = run?.last, offset <= last {
                try contentWasLost(delivery.topicPartition, last: last, found: offset)
            }
            run?.last = offset
        }
        note(run)
        for (tag, count) in counts {
            let environment = Self.environment(of: tag)
            let isDone = progress[environment]?.confirm(count, page: Int(UInt32(truncatingIfNeeded: tag))) ?? true
            if isDone {
                endSpans(tag)
                sentAt[tag] = nil
            }
            takeConfirmed(of: environment)
        }
    }

    /// Collects progress to be stored with the next query.
    mutating func takeConfirmed(of environment: EnvironmentID) {
        guard var current = progress[environment] else { return }
        if let reached = current.takeConfirmed() { confirmed.append(reached) }
        republished += current.takeRepublished().map { (environment: environment, request: $0) }
        progress[environment] = current
    }

    mutating func note(_ run: (partition: TopicPartition, last: Int64)?) {
        guard let run, run.last >= 0 else { return }
        offsets[run.partition] = run.last
        changedOffsets[run.partition] = run.last
    }
}

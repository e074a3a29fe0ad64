import Essentials
import FoundationEssentials
import Kafka
import KeyedWorker
import Model
import Postgres

/// What goes to the broker, and what it confirms.
extension Relay {
    mutating func send(_ page: Outgoing) throws -> Int {
        guard var outlet = outlets[page.environment] else { return 0 }
        let now = Timestamp(millisecondsSinceEpoch: Int64(Date().timeIntervalSince1970 * 1_000))
        let tag = Self.tag(page.environment, page.page)
        var keptBackCount = 0
        for (index, item) in page.objects.enumerated() {
            if index % Self.takeInInterval == 0 { connection.takeInStarted() }
            let (row, topic) = (item.row, item.topic)
            let id: UUID = try row.value(3)
            if obstacles.blocks(topic.name, key: id) {
                owe(topic.name, in: page.environment)
                keptBackCount += 1
                continue
            }
            let changedAt: PostgresTime? = page.hasTimes ? try row.value(8) : nil
            var object = PublishedObject(
                realm: item.path, kind: item.kind, id: id, position: try row.value(0),
                editPosition: try row.value(4),
                time: changedAt.map { Timestamp(millisecondsSinceEpoch: $0.millisecondsSince1970) } ?? now,
                traceparent: page.hasTimes ? try row.optional(7) : nil)
            let span = beginSpan(of: &object)
            do {
                try unsafe row.withBytes(5) { json in
                    try unsafe outlet.send(object, to: topic, json: json, tag: tag, through: &producer)
                }
            } catch let error as KafkaError where error.advice != nil && !error.isFatal {
                refuse(topic.name, error)
                owe(topic.name, in: page.environment)
                keptBackCount += 1
                continue
            }
            if let span {
                let subject = TraceSpan.Subject(kind: item.kind.rawValue, id: id, position: object.position)
                let environment = page.environment.rawValue
                spans[tag, default: []].append((span, .publish(topic: topic.name, environment: environment, subject)))
            }
        }
        outlets[page.environment] = outlet
        if keptBackCount < page.objects.count { sentAt[tag] = .now }
        if keptBackCount > 0 {
            progress[page.environment]?.confirm(keptBackCount, page: page.page)
            takeConfirmed(of: page.environment)
        }
        return page.objects.count - keptBackCount
    }

    /// Where the object's change belongs to a trace that is recorded, its message belongs to the span of its sending.
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

    /// Notes that some of a topic was not written: all of it is published again when that can be.
    mutating func owe(_ topic: String, in environment: EnvironmentID) {
        let debt = Owed(environment: environment, topic: topic)
        if owed.insert(debt).inserted { newlyOwed.insert(debt) }
    }

    /// Environment and page in one number, so that a report finds its page.
    static func tag(_ environment: EnvironmentID, _ page: Int) -> UInt64 {
        UInt64(UInt32(bitPattern: environment.rawValue)) << 32 | UInt64(UInt32(truncatingIfNeeded: page))
    }

    static func environment(of tag: UInt64) -> EnvironmentID {
        EnvironmentID(rawValue: Int32(bitPattern: UInt32(truncatingIfNeeded: tag >> 32)))
    }

    /// Whether a message was not written because of its topic or partition, and others can be.
    private mutating func isObstacle(_ error: KafkaError, _ delivery: Delivery) -> Bool {
        if error.isFatal || producer.fatalError != nil { return false }
        if obstacles.blocks(delivery.place) { return true }
        if error.isTimeout, isAlone(delivery) {
            obstacles.silence(delivery.place)
            tellObstacles()
        } else if error.advice != nil {
            refuse(delivery.place.topic, error)
        }
        return obstacles.blocks(delivery.place)
    }

    mutating func confirm(_ deliveries: [Delivery]) throws {
        if deliveries.isEmpty { return }
        if deliveries.contains(where: { $0.error == nil }) { lastConfirmed = .now }
        var counts: [UInt64: Int] = [:]
        // Reports come in runs of one partition: its last offset is looked up once per run.
        var run: (place: TopicPartition, last: Int64)?
        for delivery in deliveries {
            counts[delivery.tag, default: 0] += 1
            if let error = delivery.error {
                guard isObstacle(error, delivery) else { throw error }
                owe(delivery.place.topic, in: Self.environment(of: delivery.tag))
                // Which of the page's messages it is is not known.
                spans[delivery.tag] = nil
            }
            guard let offset = delivery.offset, offset >= 0 else { continue }
            if run?.place != delivery.place {
                note(run)
                run = (delivery.place, offsets[delivery.place] ?? -1)
            }
            if let last = run?.last, offset <= last { try contentWasLost(delivery.place, last: last, found: offset) }
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

    /// What is stored with the next question.
    mutating func takeConfirmed(of environment: EnvironmentID) {
        guard var current = progress[environment] else { return }
        if let reached = current.takeConfirmed() { confirmed.append(reached) }
        republished += current.takeRepublished().map { Republished(environment: environment, request: $0) }
        progress[environment] = current
    }

    mutating func note(_ run: (place: TopicPartition, last: Int64)?) {
        guard let run, run.last >= 0 else { return }
        offsets[run.place] = run.last
        changedOffsets[run.place] = run.last
    }
}

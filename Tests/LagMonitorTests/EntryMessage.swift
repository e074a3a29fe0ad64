import Essentials
import Foundation
import Kafka
import Model
import TestSupport
import Testing

/// A message of an entry, as the relay publishes it.
struct EntryMessage {
    let id: UUID
    var environment = 1
    let position: Int
    /// `nil`: the entry was deleted.
    let fields: String?

    /// Writes messages to a topic.
    static func write(
        _ messages: [EntryMessage], to address: String, topic: String = Topics.entry.name, kind: String = "TimeEntry"
    ) throws {
        var producer = try Producer(brokers: address)
        for message in messages {
            let headers = [
                (EventHeaders.id, "\(message.environment):1:\(message.position)"),
                (EventHeaders.subject, "/users/ana@example.com/\(kind)/\(message.id.text)"),
                (EventHeaders.position, "\(message.position)"),
            ]
            try producer.send(
                topic, key: Array(message.id.text.utf8), value: message.fields.map { Array($0.utf8) },
                headers: headers.map { (name: $0.0, value: Array($0.1.utf8)) })
        }
        let isFlushed = producer.flush(waitMax: patienceMax)
        #expect(isFlushed)
    }
}

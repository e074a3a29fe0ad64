import Deliveries
import Essentials
import FoundationEssentials
import Model

/// A notice as programs outside are told it. Members may be added.
enum NoticeBody {
    private struct Event: Encodable {
        let type: String
        let timestamp: Timestamp
        let data: Told
    }

    private struct Told: Encodable {
        let id: UUID
        let about: UUID?
        let code: Notice.Code
        let text: String
        let timestamp: Timestamp

        init(_ item: Shipment.Item, text: String) {
            id = item.id
            about = item.notice.about
            code = item.notice.code
            self.text = text
            timestamp = item.notice.timestamp
        }

        private enum Keys: CodingKey { case id, about, code, text, timestamp }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(id.text, forKey: .id)
            try container.encodeIfPresent(about?.text, forKey: .about)
            try container.encode(code, forKey: .code)
            try container.encode(text, forKey: .text)
            try container.encode(timestamp, forKey: .timestamp)
        }
    }

    /// A webhook's body, the same however often it is sent: an event as Standard Webhooks has them.
    static func webhook(_ item: Shipment.Item) throws -> [UInt8] {
        try json(
            Event(
                type: "notice", timestamp: item.notice.timestamp, data: Told(item, text: item.notice.text)))
    }

    /// A push message's text. A notice's text is cut where all of it would be too long.
    static func push(_ item: Shipment.Item) throws -> [UInt8] {
        // By scalars, since what is one Character may be of any length.
        let text = item.notice.text.unicodeScalars
        var kept = text[...]
        while true {
            let isCut = kept.endIndex < text.endIndex
            let bytes = try json(Told(item, text: String(kept) + (isCut ? "…" : "")))
            if bytes.count <= PushMessage.textBytesMax || kept.isEmpty { return bytes }
            kept = kept.prefix(kept.count * 3 / 4)
        }
    }

    private static func json(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }
}

import Deliveries
import Essentials
import FoundationEssentials
import Model

/// The JSON of a notice for webhooks and push messages. Members may be added.
enum NoticeBody {
    private struct Event: Encodable {
        let type: String
        let timestamp: Timestamp
        let data: NoticeData
    }

    private struct NoticeData: Encodable {
        let id: String
        let about: String?
        let code: Notice.Code
        let text: String
        let timestamp: Timestamp

        init(_ item: Shipment.Item, text: String) {
            id = item.id.text
            about = item.notice.about?.text
            code = item.notice.code
            self.text = text
            timestamp = item.notice.timestamp
        }
    }

    /// Returns a webhook's body, the same for each attempt: an event as defined by Standard Webhooks.
    static func webhook(_ item: Shipment.Item) throws -> [UInt8] {
        try json(
            Event(type: "notice", timestamp: item.notice.timestamp, data: NoticeData(item, text: item.notice.text)))
    }

    /// Returns a push message's text. The text of a long notice is truncated.
    static func push(_ item: Shipment.Item) throws -> [UInt8] {
        // Truncates by scalars, because a Character may have any length.
        let text = item.notice.text.unicodeScalars
        var prefix = text[...]
        while true {
            let isCut = prefix.endIndex < text.endIndex
            let bytes = try json(NoticeData(item, text: String(prefix) + (isCut ? "…" : "")))
            if bytes.count <= PushMessage.textBytesMax || prefix.isEmpty { return bytes }
            prefix = prefix.prefix(prefix.count * 3 / 4)
        }
    }

    private static func json(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }
}

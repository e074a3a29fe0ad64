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
        let text: String?
        let timestamp: Timestamp
        /// Messages with the same one are the same notice.
        let collapseId: String?

        init(_ item: Shipment.Item, text: String?, collapseID: String? = nil) {
            id = item.id.text
            about = item.notice.about?.text
            code = item.notice.code
            self.text = text
            timestamp = item.notice.timestamp
            collapseId = collapseID
        }
    }

    /// Returns a webhook's body, the same for each attempt: an event as defined by Standard Webhooks.
    static func webhook(_ item: Shipment.Item) throws -> [UInt8] {
        try json(
            Event(type: "notice", timestamp: item.notice.timestamp, data: NoticeData(item, text: item.notice.text)))
    }

    /// Returns a push message's text. The text of a long notice is truncated.
    static func push(_ item: Shipment.Item) throws -> [UInt8] {
        try fitted(item.notice.text, bytesMax: PushMessage.textBytesMax) { try json(NoticeData(item, text: $0)) }
    }

    /// Returns the first body that has at most `bytesMax` bytes, with the text truncated if necessary.
    private static func fitted(
        _ text: String, bytesMax: Int, _ body: (String) throws -> [UInt8]
    ) throws -> [UInt8] {
        // Truncates by scalars, because a Character may have any length.
        let text = text.unicodeScalars
        var prefix = text[...]
        while true {
            let isCut = prefix.endIndex < text.endIndex
            let bytes = try body(String(prefix) + (isCut ? "…" : ""))
            if bytes.count <= bytesMax || prefix.isEmpty { return bytes }
            prefix = prefix.prefix(prefix.count * 3 / 4)
        }
    }

    // MARK: Native push

    /// Limit on the bytes of a message, of APNs and of FCM.
    static let nativeBytesMax = 4_096

    private struct AppleAlert: Encodable {
        struct Text: Encodable {
            let body: String
        }

        let alert: Text
        let sound = "default"
    }

    private struct AppleBody: Encodable {
        let aps: AppleAlert
        let notice: NoticeData?
    }

    /// Returns the body of a message for APNs. The app finds the notice by its id.
    static func apns(_ item: Shipment.Item) throws -> [UInt8] {
        try fitted(item.notice.text, bytesMax: nativeBytesMax) { text in
            try json(AppleBody(aps: AppleAlert(alert: .init(body: text)), notice: NoticeData(item, text: nil)))
        }
    }

    private struct FirebaseBody: Encodable {
        struct Android: Encodable {
            let priority = "HIGH"
            let ttl: String
        }
        struct Apple: Encodable {
            let headers: [String: String]
            let payload: AppleBody
        }
        struct Message: Encodable {
            let token: String
            let data: NoticeData
            let android: Android
            let apns: Apple
        }

        let message: Message
    }

    /// Returns the body of a request to FCM. An app on Android displays the message itself, under the collapse id: FCM
    /// stores only one undelivered message that it displays by itself. A device of Apple displays the alert.
    ///
    /// - Parameter until: The time after which FCM discards the message.
    static func fcm(
        _ item: Shipment.Item, to token: String, collapseID: String, from now: Timestamp, until end: Timestamp
    ) throws -> [UInt8] {
        let seconds = max(0, (end.millisecondsSinceEpoch - now.millisecondsSinceEpoch) / 1_000)
        // The token is not part of the message.
        return try fitted(item.notice.text, bytesMax: nativeBytesMax + token.utf8.count) { text in
            let apple = FirebaseBody.Apple(
                headers: [
                    "apns-collapse-id": collapseID, "apns-expiration": "\(end.millisecondsSinceEpoch / 1_000)",
                    "apns-priority": "10", "apns-push-type": "alert",
                ], payload: AppleBody(aps: AppleAlert(alert: .init(body: text)), notice: nil))
            return try json(
                FirebaseBody(
                    message: .init(
                        token: token, data: NoticeData(item, text: text, collapseID: collapseID),
                        android: .init(ttl: "\(seconds)s"), apns: apple)))
        }
    }

    private static func json(_ value: some Encodable) throws -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return Array(try encoder.encode(value))
    }
}

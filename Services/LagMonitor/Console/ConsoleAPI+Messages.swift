import Audit
import Essentials
import FoundationEssentials
import HTTPServer
import HTTPTypes
import Hummingbird
import Kafka
import Model

/// The newest messages of an environment on a topic. They contain personal data: each page writes an audit record
/// before the messages are read.
extension ConsoleAPI {
    private struct MessageRow: Encodable {
        let partition: Int32
        let offset: Int64
        /// The time of writing; `nil` if the message has none.
        let at: String?
        let kind: String
        let id: String
        let position: Int64?
        /// JSON, as text; `nil` if the object was deleted.
        let fields: String?

        /// - Returns: `nil` if the message has no valid subject.
        init?(_ message: TopicScanMessage) {
            guard let subject = message.headers[EventHeaders.subject].flatMap({ EventSubject($0) }) else { return nil }
            (partition, offset, fields) = (message.partition, message.offset, message.value)
            at = message.milliseconds < 0 ? nil : Timestamp(millisecondsSinceEpoch: message.milliseconds).description
            (kind, id) = (subject.kind.rawValue, subject.id.text)
            position = message.headers[EventHeaders.position].flatMap { Int64($0) }
        }
    }

    /// Returns the newest messages of a topic of Fieldpost, or those of one object.
    @concurrent func messages(_ request: Request, _ context: EdgeContext) async throws -> Response {
        struct MessagePage: Encodable {
            /// The newest first.
            let messages: [MessageRow]
            let scanned: Int
            let available: Int
        }
        let principal = try gate.authenticate(request, context)
        let query = try ConsoleQuery(request)
        let (name, key) = (try query.text("name"), try query.id("key")?.text)
        guard Topics.contains(name) else { throw ConsoleResponse.notFound("topic") }
        do {
            let found = try await inEnvironment(query, .long) { environment, connection in
                try principal.record(
                    .payloadViewed, key ?? name, in: environment, detail: ["view": "messages", "topic": name],
                    on: &connection)
                let prefix = "\(environment):"
                return try brokers.newest(of: name, key: key, countMax: Self.pageCountMax) { headers in
                    headers[EventHeaders.id]?.hasPrefix(prefix) == true
                }
            }
            return try Response.json(
                MessagePage(
                    messages: found.messages.compactMap { MessageRow($0) }, scanned: found.scannedCount,
                    available: found.availableCount))
        } catch let error as KafkaError {
            throw Problem(
                .serviceUnavailable, detail: "The messages cannot be read: \(error)", headers: [.retryAfter: "5"])
        }
    }
}

internal import Kafka
public import Model

/// A change of an object, as a message of a topic.
public struct TopicMessage: Equatable, Sendable {
    /// The topic's name.
    public let topic: String
    /// The partition's number in the topic.
    public let partition: Int32
    /// The message's number in the partition.
    public let offset: Int64
    /// The object: its realm, kind and id.
    public let subject: EventSubject
    /// The object's position after the change. An object may have changed again meanwhile; that change has a message of
    /// its own.
    public let position: Int64
    /// The object's fields as JSON; `nil` for a tombstone: the object was deleted.
    public let fields: [UInt8]?
    /// All headers; `EventHeaders` has their names.
    public let headers: [String: String]

    /// Creates a message, for tests of a handler.
    public init(
        topic: String, partition: Int32 = 0, offset: Int64 = 0, subject: EventSubject, position: Int64,
        fields: [UInt8]?, headers: [String: String] = [:]
    ) {
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.subject = subject
        self.position = position
        self.fields = fields
        self.headers = headers
    }
}

extension TopicMessage {
    /// - Returns: `nil` if no publisher of Fieldpost wrote the message.
    init?(_ message: Message) {
        var headers: [String: String] = [:]
        message.forEachHeader { name, bytes in headers[name.text] = Self.text(bytes) }
        guard let subject = headers[EventHeaders.subject].flatMap({ EventSubject($0) }),
            let position = headers[EventHeaders.position].flatMap({ Int64($0) })
        else { return nil }
        self.init(
            topic: message.topic, partition: message.partition, offset: message.offset, subject: subject,
            position: position,
            fields: message.withValue { bytes in unsafe bytes.withUnsafeBytes { unsafe Array($0) } },
            headers: headers)
    }

    private static func text(_ bytes: RawSpan) -> String {
        unsafe bytes.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}

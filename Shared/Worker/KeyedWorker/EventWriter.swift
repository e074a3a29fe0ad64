package import Essentials
package import FoundationEssentials
package import Kafka
package import Model

/// Encodes objects as messages in the format of `asyncapi.yaml`.
///
/// On the hot path of the relay: a message's texts are written into one reused buffer.
package struct EventWriter {
    private let version: (generation: Int64, epoch: Int64)
    private let source: [UInt8]
    /// `ce_id` up to the position.
    private let idStart: [UInt8]
    private let generation: [UInt8]
    private let epoch: [UInt8]
    private var text = MessageText()

    /// Maximum wait for a full queue: a broker that accepts nothing for longer is unavailable.
    private static let roomWaitMax = Duration.seconds(10)
    private static let specVersion = Array(EventHeaders.specVersionValue.utf8)
    private static let contentType = Array(EventHeaders.contentTypeValue.utf8)
    private static let types = [Kind: [UInt8]](
        uniqueKeysWithValues: Kind.allCases.map { ($0, Array(EventHeaders.type(of: $0).utf8)) })

    package init(environment: EnvironmentID, generation: Int64, epoch: Int64) {
        version = (generation, epoch)
        source = Array("/environments/\(environment)".utf8)
        idStart = Array("\(environment):\(generation):".utf8)
        self.generation = Array(String(generation).utf8)
        self.epoch = Array(String(epoch).utf8)
    }

    /// Whether the writer produces messages of this version.
    package func isOf(generation: Int64, epoch: Int64) -> Bool { version == (generation, epoch) }

    /// Queues the latest state of an object.
    ///
    /// - Parameter json: The fields as PostgreSQL sent them, or `nil` for a tombstone.
    package mutating func send(
        _ object: PublishedObject, to topic: Topic, json: UnsafeRawBufferPointer?, tag: UInt64,
        through producer: inout Producer
    ) throws(KafkaError) {
        text.removeAll()
        let subjectStart = text.append(object.realm.description).lowerBound
        text.append("/")
        text.append(object.kind.rawValue)
        text.append("/")
        let key = text.append(object.id)
        let subject = subjectStart..<key.upperBound
        let idStart = text.append(self.idStart).lowerBound
        let position = text.append(object.position)
        let id = idStart..<position.upperBound
        let editPosition = text.append(object.editPosition)
        let time = text.append(object.time)
        let type = Self.types[object.kind] ?? Array(EventHeaders.type(of: object.kind).utf8)
        var headers = Headers(capacity: 13)
        let bytes = unsafe text.bytes.span.bytes
        unsafe headers.add("ce_specversion", Self.specVersion.span.bytes)
        headers.add("ce_id", bytes.extracting(id))
        unsafe headers.add("ce_source", source.span.bytes)
        unsafe headers.add("ce_type", type.span.bytes)
        headers.add("ce_time", bytes.extracting(time))
        headers.add("ce_subject", bytes.extracting(subject))
        headers.add("ce_partitionkey", bytes.extracting(key))
        unsafe headers.add("content-type", Self.contentType.span.bytes)
        if let traceparent = object.traceparent { headers.add("traceparent", traceparent) }
        headers.add("fieldpost-position", bytes.extracting(position))
        headers.add("fieldpost-edit-position", bytes.extracting(editPosition))
        unsafe headers.add("fieldpost-generation", generation.span.bytes)
        unsafe headers.add("fieldpost-epoch", epoch.span.bytes)
        if let json = unsafe json {
            try unsafe producer.send(
                topic.name, key: bytes.extracting(key), value: json.bytes, headers: headers, tag: tag,
                waitMax: Self.roomWaitMax)
        } else {
            try producer.send(
                topic.name, key: bytes.extracting(key), value: nil, headers: headers, tag: tag,
                waitMax: Self.roomWaitMax)
        }
    }
}

/// Metadata of a published object.
package struct PublishedObject {
    package var realm: RealmPath
    package var kind: Kind
    package var id: UUID
    package var position: Int64
    package var editPosition: Int64
    package var time: Timestamp
    package var traceparent: String?

    package init(
        realm: RealmPath, kind: Kind, id: UUID, position: Int64, editPosition: Int64, time: Timestamp,
        traceparent: String? = nil
    ) {
        self.realm = realm
        self.kind = kind
        self.id = id
        self.position = position
        self.editPosition = editPosition
        self.time = time
        self.traceparent = traceparent
    }
}

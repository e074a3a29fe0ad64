package import FoundationEssentials
package import Kafka
package import Model
import Postgres

/// Turns objects into messages, as the README's table of topics and `asyncapi.yaml` describe them.
package struct Outlet {
    let environment: EnvironmentID
    let source: String
    let generation: Int64
    let epoch: Int64

    /// How long a full queue is waited for: a broker that takes nothing for longer is away.
    private static let roomWaitMax = Duration.seconds(10)

    package init(environment: EnvironmentID, generation: Int64, epoch: Int64) {
        self.environment = environment
        self.generation = generation
        self.epoch = epoch
        source = "/environments/\(environment)"
    }

    /// Queues one object's latest state.
    ///
    /// - Parameter json: The fields as PostgreSQL sent them, or `nil` for a tombstone.
    package func send(
        _ object: PublishedObject, to topic: Topic, json: UnsafeRawBufferPointer?, tag: UInt64,
        through producer: inout Producer
    ) throws(KafkaError) {
        let key = object.id.text
        var headers = Headers(capacity: 13)
        headers.add("ce_specversion", EventHeaders.specVersionValue)
        headers.add("ce_id", "\(environment):\(generation):\(object.position)")
        headers.add("ce_source", source)
        headers.add("ce_type", EventHeaders.type(of: object.kind))
        headers.add("ce_time", object.time.description)
        headers.add("ce_subject", "\(object.realm)/\(object.kind.rawValue)/\(key)")
        headers.add("ce_partitionkey", key)
        headers.add("content-type", EventHeaders.contentTypeValue)
        if let traceparent = object.traceparent { headers.add("traceparent", traceparent) }
        headers.add("fieldpost-position", String(object.position))
        headers.add("fieldpost-edit-position", String(object.editPosition))
        headers.add("fieldpost-generation", String(generation))
        headers.add("fieldpost-epoch", String(epoch))
        let keyBytes = Array(key.utf8)
        if let json = unsafe json {
            try unsafe producer.send(
                topic.name, key: keyBytes.span.bytes, value: json.bytes, headers: headers, tag: tag,
                waitMax: Self.roomWaitMax)
        } else {
            try unsafe producer.send(
                topic.name, key: keyBytes.span.bytes, value: nil, headers: headers, tag: tag,
                waitMax: Self.roomWaitMax)
        }
    }
}

/// What a message says of its object, beside the fields.
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

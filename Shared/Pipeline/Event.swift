package import FoundationEssentials
package import Kafka
package import Model

/// A message of one of Fieldpost's topics with what is needed to route and guard it, all of it from the headers.
package struct Event {
    package let message: Message
    package let environment: EnvironmentID
    package let generation: Int64
    package let epoch: Int64
    package let position: Int64
    package let editPosition: Int64
    package let realm: RealmPath
    package let kind: Kind
    package let id: UUID

    package var subject: EventSubject { EventSubject(realm: realm, kind: kind, id: id) }

    /// - Throws: `Malformed`, which says what is missing: such a message is poison.
    package init(_ message: Message) throws(Malformed) {
        var environment: Int64?
        var generation: Int64?
        var epoch: Int64?
        var position: Int64?
        var editPosition: Int64?
        var subject: EventSubject?
        message.forEachHeader { name, bytes in
            if name == EventHeaderName.position {
                position = Int64(ascii: bytes)
            } else if name == EventHeaderName.editPosition {
                editPosition = Int64(ascii: bytes)
            } else if name == EventHeaderName.generation {
                generation = Int64(ascii: bytes)
            } else if name == EventHeaderName.epoch {
                epoch = Int64(ascii: bytes)
            } else if name == EventHeaderName.id {
                environment = Int64(ascii: bytes, before: UInt8(ascii: ":"))
            } else if name == EventHeaderName.subject {
                subject = EventSubject(String(decoding: bytes.copied, as: UTF8.self))
            }
        }
        guard let environment = environment.flatMap(Int32.init(exactly:)) else { throw Malformed(EventHeaders.id) }
        guard let generation else { throw Malformed(EventHeaders.generation) }
        guard let epoch else { throw Malformed(EventHeaders.epoch) }
        guard let position else { throw Malformed(EventHeaders.position) }
        guard let editPosition else { throw Malformed(EventHeaders.editPosition) }
        guard let subject else { throw Malformed(EventHeaders.subject) }
        self.message = message
        self.environment = EnvironmentID(rawValue: environment)
        self.generation = generation
        self.epoch = epoch
        self.position = position
        self.editPosition = editPosition
        realm = subject.realm
        kind = subject.kind
        id = subject.id
    }

    /// A message that no correct sender sends.
    package struct Malformed: Error, CustomStringConvertible {
        let header: String
        init(_ header: String) { self.header = header }
        package var description: String { "the message has no usable header \(header)" }
    }
}

/// `EventHeaders` as constants that can be compared without making a `String`; a test compares the two.
enum EventHeaderName {
    static let id: StaticString = "ce_id"
    static let subject: StaticString = "ce_subject"
    static let position: StaticString = "fieldpost-position"
    static let editPosition: StaticString = "fieldpost-edit-position"
    static let generation: StaticString = "fieldpost-generation"
    static let epoch: StaticString = "fieldpost-epoch"
}

extension Int64 {
    /// The number that ASCII digits spell, up to `end` or to the end of the bytes. At most 18 digits.
    init?(ascii bytes: RawSpan, before end: UInt8? = nil) {
        var value: Int64 = 0
        var count = 0
        for index in 0..<bytes.byteCount {
            let byte = unsafe bytes.unsafeLoad(fromByteOffset: index, as: UInt8.self)
            if byte == end { break }
            guard byte >= 48, byte <= 57, count < 18 else { return nil }
            value = value * 10 + Int64(byte - 48)
            count += 1
        }
        guard count > 0 else { return nil }
        self = value
    }
}

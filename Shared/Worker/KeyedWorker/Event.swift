package import Essentials
package import FoundationEssentials
package import Kafka
package import Model

/// A message of one of Fieldpost's topics with what is needed to route and guard it, all of it from the headers.
///
/// Reading it is on the hot path of every worker: the fields are not decoded, and of the subject only the id.
package struct Event {
    package let message: Message
    package let environment: EnvironmentID
    package let generation: Int64
    package let epoch: Int64
    package let position: Int64
    package let editPosition: Int64
    package let kind: Kind
    package let id: UUID
    package let realm: RealmPath
    /// The trace that the change belongs to. A header that is not one counts as none.
    package let trace: TraceContext?

    /// Whether a device or an integration changed the object last, and not a service's decision.
    package var isEdit: Bool { position == editPosition }

    /// What the event is about.
    package var subject: EventSubject { EventSubject(realm: realm, kind: kind, id: id) }

    /// - Parameter realms: Those met before.
    /// - Throws: `Malformed`, which says what is missing: such a message is poison.
    package init(_ message: Message, _ realms: inout KnownRealms) throws(Malformed) {
        var environment: Int64?
        var generation: Int64?
        var epoch: Int64?
        var position: Int64?
        var editPosition: Int64?
        var subject: SubjectParts?
        var trace: TraceContext?
        message.forEachHeader { name, bytes in
            if name.first == UInt8(ascii: "f") {
                if name == EventHeaderName.position {
                    position = Int64(ascii: bytes)
                } else if name == EventHeaderName.editPosition {
                    editPosition = Int64(ascii: bytes)
                } else if name == EventHeaderName.generation {
                    generation = Int64(ascii: bytes)
                } else if name == EventHeaderName.epoch {
                    epoch = Int64(ascii: bytes)
                }
            } else if name == EventHeaderName.subject {
                subject = SubjectParts(bytes)
            } else if name == EventHeaderName.id {
                environment = Int64(ascii: bytes, before: UInt8(ascii: ":"))
            } else if name == EventHeaderName.traceParent {
                trace = TraceContext(ascii: bytes)
            }
        }
        guard let environment = environment.flatMap(Int32.init(exactly:)) else { throw Malformed(EventHeaders.id) }
        guard let generation else { throw Malformed(EventHeaders.generation) }
        guard let epoch else { throw Malformed(EventHeaders.epoch) }
        guard let position else { throw Malformed(EventHeaders.position) }
        guard let editPosition else { throw Malformed(EventHeaders.editPosition) }
        guard let subject, let realm = realms.path(subject.realm) else { throw Malformed(EventHeaders.subject) }
        self.message = message
        self.environment = EnvironmentID(rawValue: environment)
        self.generation = generation
        self.epoch = epoch
        self.position = position
        self.editPosition = editPosition
        kind = subject.kind
        id = subject.id
        self.realm = realm
        self.trace = trace
    }

    /// A message that no correct sender sends.
    package struct Malformed: Error, CustomStringConvertible {
        let header: String
        init(_ header: String) { self.header = header }
        package var description: String { "the message has no usable header \(header)" }
    }
}

/// Realms' paths that were read before: to find one is cheaper than to check it again.
package struct KnownRealms {
    private var paths: [String: RealmPath] = [:]

    /// The memory is dropped when it holds more realms than this.
    private static let countMax = 100_000

    package init() {}

    /// - Returns: `nil` when the text is not a path.
    mutating func path(_ text: String) -> RealmPath? {
        if let known = paths[text] { return known }
        guard let path = RealmPath(text) else { return nil }
        if paths.count >= Self.countMax { paths = [:] }
        paths[text] = path
        return path
    }
}

/// `EventHeaders` as constants that can be compared without making a `String`; a test compares the two.
enum EventHeaderName {
    static let id: StaticString = "ce_id"
    static let subject: StaticString = "ce_subject"
    static let traceParent: StaticString = "traceparent"
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

/// `<realm path>/<Kind>/<uuid>` taken apart from its end.
struct SubjectParts {
    let realm: String
    let kind: Kind
    let id: UUID

    init?(_ bytes: RawSpan) {
        let slash = UInt8(ascii: "/")
        let idStart = bytes.byteCount - 36
        guard idStart > 2, bytes.byte(at: idStart - 1) == slash,
            let id = UUID(ascii: bytes.extracting(idStart..<bytes.byteCount))
        else { return nil }
        var kindStart = idStart - 1
        while kindStart > 0, bytes.byte(at: kindStart - 1) != slash { kindStart -= 1 }
        guard kindStart > 1, let kind = Kind(rawValue: bytes.text(kindStart..<idStart - 1)) else { return nil }
        self.id = id
        self.kind = kind
        realm = bytes.text(0..<kindStart - 1)
    }
}

extension RawSpan {
    @inline(__always)
    func byte(at index: Int) -> UInt8 { unsafe unsafeLoad(fromByteOffset: index, as: UInt8.self) }

    func text(_ range: Range<Int>) -> String {
        unsafe extracting(range).withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
}

extension UUID {
    /// The id as two numbers, in the order PostgreSQL sorts ids by.
    var halves: (high: UInt64, low: UInt64) {
        unsafe withUnsafeBytes(of: uuid) { bytes in
            unsafe (
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
    }
}

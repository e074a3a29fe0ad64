package import Essentials
package import FoundationEssentials
package import Kafka
package import Model

/// A message of one of Fieldpost's topics, with the headers that routing and version checks need.
///
/// On the hot path of every worker: fields are not decoded, and of the subject only the id.
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
    /// The trace of the change. An invalid header counts as absent.
    package let trace: TraceContext?

    /// Whether a device or an integration made the last change, not a service's decision.
    package var isEdit: Bool { position == editPosition }

    /// The object of the event.
    package var subject: EventSubject { EventSubject(realm: realm, kind: kind, id: id) }

    /// - Parameter realms: Cache of parsed paths.
    /// - Throws: `Malformed` with the unusable header: such a message is poison.
    package init(_ message: Message, _ realms: inout RealmPathCache) throws(Malformed) {
        var environment: Int64?
        var generation: Int64?
        var epoch: Int64?
        var position: Int64?
        var editPosition: Int64?
        var subject: ParsedSubject?
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
                subject = ParsedSubject(bytes)
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

    /// A message that no correct producer sends.
    package struct Malformed: Error, CustomStringConvertible {
        let header: String
        init(_ header: String) { self.header = header }
        package var description: String { "the message has no valid header \(header)" }
    }
}

/// Parsed realm paths. A lookup is cheaper than parsing and validating the path again.
package struct RealmPathCache {
    private var paths: [String: RealmPath] = [:]

    /// Maximum number of paths; the cache is then cleared.
    private static let countMax = 100_000

    /// - Returns: `nil` if the text is not a path.
    mutating func path(_ text: String) -> RealmPath? {
        if let cached = paths[text] { return cached }
        guard let path = RealmPath(text) else { return nil }
        if paths.count >= Self.countMax { paths = [:] }
        paths[text] = path
        return path
    }
}

/// `EventHeaders` as constants that are compared without allocating a `String`. A test verifies that they are equal.
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
    /// Parses decimal ASCII digits up to `end`, or to the end of the bytes. At most 18 digits.
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

/// `<realm path>/<Kind>/<uuid>`, parsed from its end.
struct ParsedSubject {
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

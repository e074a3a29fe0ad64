/// Names of the headers of a Kafka message: all that a consumer routes and guards by, so that the value stays bytes.
///
/// Those with `ce_` are CloudEvents 1.0 in Kafka's binary mode (CloudEvents Kafka Protocol Binding §3.2).
public enum EventHeaders {
    /// CloudEvents' version, always ``specVersionValue``.
    public static let specVersion = "ce_specversion"
    /// The value of ``specVersion``.
    public static let specVersionValue = "1.0"
    /// `environment:generation:position`, unique for ever.
    public static let id = "ce_id"
    /// Who published it: `/environments/{environment}`.
    public static let source = "ce_source"
    /// What changed, ``type(of:)``.
    public static let type = "ce_type"
    /// When it was published, a ``Timestamp``.
    public static let time = "ce_time"
    /// Which object it is about, an ``EventSubject``.
    public static let subject = "ce_subject"
    /// The same text as the message's key.
    public static let partitionKey = "ce_partitionkey"
    /// The value's media type, ``contentTypeValue``.
    public static let contentType = "content-type"
    /// The value of ``contentType``.
    public static let contentTypeValue = "application/json"
    /// W3C Trace Context.
    public static let traceParent = "traceparent"
    /// The object's position, in decimal digits.
    public static let position = "fieldpost-position"
    /// The position of the last change by a device or integration, in decimal digits.
    public static let editPosition = "fieldpost-edit-position"
    /// The environment's generation, which changes when a database is restored or the environment moves.
    public static let generation = "fieldpost-generation"
    /// The relay's epoch, which changes when Kafka's content was lost.
    public static let epoch = "fieldpost-epoch"

    /// A header as documents tell it.
    public struct Description: Equatable, Sendable {
        /// The header's name.
        public let name: String
        /// Its value, in words.
        public let value: String
    }

    /// Every header, in the order to read them. `docs/integrators/topics.md` is made from them, and
    /// `deploy/asyncapi.yaml` is checked against them.
    public static let all = [
        Description(name: specVersion, value: "`\(specVersionValue)`"),
        Description(
            name: id,
            value: "`environment:generation:position`, for example `1:1:812`; the same event has the same id"),
        Description(name: source, value: "`/environments/1`"),
        Description(name: type, value: "`\(type(of: .timeEntry))`"),
        Description(name: time, value: "when it changed; when it was published, if it was published again"),
        Description(
            name: subject, value: "realm path, kind and id: `/users/ana@example.com/TimeEntry/8c1f7e0a-…`"),
        Description(name: partitionKey, value: "the message's key"),
        Description(name: contentType, value: "`\(contentTypeValue)`"),
        Description(name: traceParent, value: "W3C Trace Context, when the change belongs to a trace"),
        Description(name: position, value: "the object's position; a consumer takes only newer ones"),
        Description(name: editPosition, value: "position of the last change by a device or integration"),
        Description(
            name: generation,
            value: "changes when a database is restored, or the environment moves; others are dropped"),
        Description(
            name: epoch, value: "grows when Kafka's content was lost: read the partition from its beginning"),
    ]

    /// The event type of changes of a kind, for example `fieldpost.TimeEntry`.
    public static func type(of kind: Kind) -> String { "fieldpost." + kind.rawValue }
}

/// Names of the headers of a Kafka message. Consumers route and deduplicate by headers alone and do not parse the
/// value.
///
/// Those with `ce_` are CloudEvents 1.0 in Kafka's binary mode (CloudEvents Kafka Protocol Binding §3.2).
public enum EventHeaders {
    /// CloudEvents' version, always ``specVersionValue``.
    public static let specVersion = "ce_specversion"
    /// The value of ``specVersion``.
    public static let specVersionValue = "1.0"
    /// `environment:generation:position`, globally unique.
    public static let id = "ce_id"
    /// The publisher: `/environments/{environment}`.
    public static let source = "ce_source"
    /// The event type, ``type(of:)``.
    public static let type = "ce_type"
    /// The time of publication, a `Timestamp`.
    public static let time = "ce_time"
    /// The object, an ``EventSubject``.
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
    /// The relay's epoch, which increases when Kafka's content is lost.
    public static let epoch = "fieldpost-epoch"

    /// A header as described in documents.
    public struct Description: Equatable, Sendable {
        /// The header's name.
        public let name: String
        /// A description of its value, in Markdown.
        public let value: String
    }

    /// All headers in reading order. `docs/integrators/topics.md` is generated from them, and a test compares them with
    /// `deploy/asyncapi.yaml`.
    public static let all = [
        Description(name: specVersion, value: "`\(specVersionValue)`"),
        Description(
            name: id,
            value: "`environment:generation:position`, for example `1:1:812`; the same event has the same id"),
        Description(name: source, value: "`/environments/1`"),
        Description(name: type, value: "`\(type(of: .timeEntry))`"),
        Description(name: time, value: "time of the change; of the publication for a republished object"),
        Description(
            name: subject, value: "realm path, kind and id: `/users/ana@example.com/TimeEntry/8c1f7e0a-…`"),
        Description(name: partitionKey, value: "the message's key"),
        Description(name: contentType, value: "`\(contentTypeValue)`"),
        Description(name: traceParent, value: "W3C Trace Context, if the change belongs to a trace"),
        Description(name: position, value: "the object's position; a consumer processes only newer ones"),
        Description(name: editPosition, value: "position of the last change by a device or integration"),
        Description(
            name: generation,
            value: "changes when a database is restored or the environment moves; discard others"),
        Description(
            name: epoch, value: "increases when Kafka's content is lost: read the partition from its beginning"),
    ]

    /// Returns the event type of changes of a kind, for example `fieldpost.TimeEntry`.
    public static func type(of kind: Kind) -> String { "fieldpost." + kind.rawValue }
}

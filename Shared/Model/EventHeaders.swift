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

    /// Returns the event type of changes of a kind, for example `fieldpost.TimeEntry`.
    public static func type(of kind: Kind) -> String { "fieldpost." + kind.rawValue }
}

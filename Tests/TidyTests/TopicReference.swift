import Model

/// `docs/integrators/topics.md`, of `Topics` and `EventHeaders`.
enum TopicReference {
    static func topics() -> String {
        Documents.table(
            ["topic", "kinds (in realms)", "key", "partitions", "retention", "consumers"],
            Topics.all.map { topic in
                let key =
                    switch topic.key {
                    case .objectID: "object id"
                    }
                let kinds = topic.sources.map { "\($0.kind.rawValue) (\($0.realms.joined(separator: ", ")))" }
                return [
                    "`\(topic.name)`", kinds.joined(separator: ", "), key, "\(topic.partitions)",
                    "\(topic.retention.components.seconds / 86_400)d", topic.consumers.joined(separator: ", "),
                ]
            })
    }

    static func headers() -> String {
        Documents.table(["header", "value"], EventHeaders.all.map { ["`\($0.name)`", $0.value] })
    }
}

extension EventHeaders {
    /// A header as described in documents.
    struct Description: Sendable {
        /// The header's name.
        let name: String
        /// A description of its value, in Markdown.
        let value: String
    }

    /// All headers in reading order, which a test compares with `deploy/asyncapi.yaml`.
    static let all = [
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
}

import Model

/// `docs/topics.md`, of `Topics` and `EventHeaders`.
enum TopicReference {
    static func topics() -> String {
        Documents.table(
            ["topic", "kinds", "key", "partitions", "retention", "consumers"],
            Topics.all.map { topic in
                let key =
                    switch topic.key {
                    case .objectID: "object id"
                    }
                return [
                    "`\(topic.name)`", topic.kinds.map(\.rawValue).joined(separator: ", "), key, "\(topic.partitions)",
                    "\(topic.retention.components.seconds / 86_400)d", topic.consumers.joined(separator: ", "),
                ]
            })
    }

    static func headers() -> String {
        Documents.table(["header", "value"], EventHeaders.all.map { ["`\($0.name)`", $0.value] })
    }
}

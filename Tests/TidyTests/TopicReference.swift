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

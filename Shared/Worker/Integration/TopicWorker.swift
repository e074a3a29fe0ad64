internal import Essentials
public import Logging
internal import UnixSignals

/// A member of a consumer group that calls a handler for each message of topics.
///
/// - **Order.** Messages of an object are handled in their order, one at a time. Those of different objects are handled
///   concurrently, at most ``concurrencyMax`` at once.
/// - **At least once.** A message's offset is committed after the handler has returned for it and all earlier messages
///   of its partition. A message may be delivered again, for example after a crash or a rebalance. The effect of the
///   handler must be the same then, for example by a mutation with the message's position.
/// - **Errors.** If the handler throws, the error is logged, and the same message is retried with exponential backoff
///   up to a minute, without limit. Later messages of that object wait; when 1,000 messages wait, those of all objects
///   do. The group's lag shows it.
/// - **Group.** Start as many workers of a group as the topic has partitions, or fewer.
///
/// A message that no publisher of Fieldpost wrote is logged as an error, and skipped.
public struct TopicWorker: Sendable {
    let group: String
    let topics: [String]
    let settings: KafkaSettings
    /// The maximum number of concurrent calls of the handler, at least 1.
    public var concurrencyMax = 4
    let logger: Logger
    let handler: @Sendable (TopicMessage) async throws -> Void

    /// Creates a worker, which does nothing before ``run()``.
    ///
    /// - Parameters:
    ///   - group: The name of the consumer group: workers of the same name share the topics' partitions. A new group
    ///     starts at the oldest message.
    ///   - topics: The names of the topics.
    ///   - settings: The brokers and properties.
    ///   - logger: Receives failures of the handler and of the brokers.
    ///   - handler: Handles one message. Its task is cancelled when the worker stops, or loses the message's partition:
    ///     it may then throw any error.
    public init(
        group: String, topics: [String], settings: KafkaSettings, logger: Logger = Logger(label: "integration"),
        handler: @escaping @Sendable (TopicMessage) async throws -> Void
    ) {
        self.group = group
        self.topics = topics
        self.settings = settings
        self.logger = logger
        self.handler = handler
    }

    /// Runs until the current task is cancelled. Then it cancels the handler's calls, waits up to ten seconds for their
    /// end, commits the offsets of handled messages, and leaves the group.
    ///
    /// - Throws: ``IntegrationError/invalidSetting(_:)`` for ``concurrencyMax`` below 1, or a property that ends
    ///   commits. ``IntegrationError/kafka(_:)`` if Kafka rejects a property, or ends the consumer. Unavailable brokers
    ///   are logged, and no error.
    public func run() async throws {
        guard concurrencyMax > 0 else {
            throw IntegrationError.invalidSetting("concurrencyMax is \(concurrencyMax): at least 1")
        }
        let commits = settings.properties["enable.auto.commit", default: "true"]
        guard commits == "true" else {
            throw IntegrationError.invalidSetting("enable.auto.commit is \"\(commits)\": only true commits offsets")
        }
        let mailbox = TopicMailbox()
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                startThread(named: "topic-worker") {
                    continuation.resume(with: Result { try TopicLoop.run(self, mailbox) })
                }
            }
        } onCancel: {
            mailbox.stop()
        }
    }

    /// Runs until the process receives SIGTERM or SIGINT, or the current task is cancelled.
    ///
    /// - Throws: As ``run()``.
    public func runUntilSignal() async throws {
        let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint)
        try await withThrowingTaskGroup { group in
            group.addTask { try await run() }
            group.addTask { for await _ in signals { return } }
            try await group.next()
            group.cancelAll()
            try await group.waitForAll()
        }
    }
}

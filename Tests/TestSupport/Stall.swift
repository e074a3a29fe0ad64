@testable package import Kafka

extension Consumer {
    /// Pauses a partition inside librdkafka without the client's knowledge, as in librdkafka's race between commands
    /// and execution. The partition must have delivered a message before.
    package mutating func pauseUnknowingly(_ partition: TopicPartition) throws {
        try pause(partition)
        context.paused.remove(partition)
    }
}

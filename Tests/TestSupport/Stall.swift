@testable package import Kafka

extension Consumer {
    /// Makes librdkafka keep a partition for itself, as it does when what it is told crosses with what it does: nobody
    /// knows that it is paused. It must have delivered something.
    package mutating func pauseUnknowingly(_ partition: TopicPartition) throws {
        try pause(partition)
        context.paused.remove(partition)
    }
}

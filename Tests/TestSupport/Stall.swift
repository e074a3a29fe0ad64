@testable package import Kafka

extension Consumer {
    /// Pauses partitions inside librdkafka without the client's knowledge, as in librdkafka's race between commands and
    /// execution: those that have delivered a message before.
    package mutating func pauseUnknowingly() throws {
        try pauseAll()
        context.isPausedAll = false
    }
}

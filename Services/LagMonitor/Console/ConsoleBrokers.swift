import Kafka

/// The brokers whose messages the console displays.
struct ConsoleBrokers: Sendable {
    let address: String
    var properties: [String: String] = [:]

    /// The limit of messages that one request scans, evenly over the topic's partitions.
    private static let scanMax: Int64 = 10_000
    private static let waitMax = Duration.seconds(5)

    /// Returns the newest messages of a topic, or of one key.
    ///
    /// - Throws: `KafkaError` if the topic does not exist, or the brokers do not respond in time.
    func newest(
        of topic: String, key: String?, countMax: Int, where isIncluded: ([String: String]) -> Bool
    ) throws -> TopicScan.Found {
        try TopicScan.run(
            topic, key: key.map { Array($0.utf8) }, brokers: address, properties: properties, scanMax: Self.scanMax,
            countMax: countMax, waitMax: Self.waitMax, where: isIncluded)
    }
}

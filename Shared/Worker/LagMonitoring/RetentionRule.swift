/// Time-based retention of a topic, from Kafka's settings.
package enum RetentionRule {
    /// - Parameter configuration: `cleanup.policy` and `retention.ms`, among others.
    /// - Returns: In seconds; `nil` if the topic has no time-based deletion.
    package static func seconds(_ configuration: [String: String]) -> Double? {
        let policies = configuration["cleanup.policy"]?.split(separator: ",").map { $0.filter { $0 != " " } }
        guard policies?.contains("delete") ?? true, let text = configuration["retention.ms"],
            let milliseconds = Double(text), milliseconds >= 0
        else { return nil }
        return milliseconds / 1_000
    }

    /// Minimum time until the oldest unread message is removed. Kafka removes whole segments, each when its newest
    /// message expires: the message may exist for longer.
    package static func headroom(age: Double, retention: Double) -> Double { max(0, retention - age) }
}

/// How long a topic keeps a message, by Kafka's settings of it.
package enum RetentionRule {
    /// - Parameter configuration: `cleanup.policy` and `retention.ms`, among others.
    /// - Returns: In seconds; `nil` when age alone removes nothing.
    package static func seconds(_ configuration: [String: String]) -> Double? {
        let policies = configuration["cleanup.policy"]?.split(separator: ",").map { $0.filter { $0 != " " } }
        guard policies?.contains("delete") ?? true, let text = configuration["retention.ms"],
            let milliseconds = Double(text), milliseconds >= 0
        else { return nil }
        return milliseconds / 1_000
    }

    /// How long the oldest message that is not read will be there at least. Kafka removes whole segments, each when its
    /// newest message is too old: it may well be there for longer.
    package static func headroom(age: Double, retention: Double) -> Double { max(0, retention - age) }
}

import Kafka
import Model

/// Retention of topics, cached since it seldom changes.
struct Retentions: Sendable {
    private static let refreshInterval = Duration.seconds(300)
    /// After a failure.
    private static let retryInterval = Duration.seconds(60)

    /// Retentions in the topic catalogue, for topics whose settings brokers do not return.
    private let declared: [String: Double]
    private var lastQuery: (topics: Set<String>, at: ContinuousClock.Instant)?
    /// By topic, in seconds.
    private(set) var known: [String: Double] = [:]
    /// The reason why some retentions are unknown.
    private(set) var problem: String?

    init(of topics: [Topic]) {
        declared = Dictionary(topics.map { ($0.name, Double($0.retention.components.seconds)) }) { first, _ in first }
    }

    /// Whether to query these topics now.
    func isDue(_ topics: Set<String>, at now: ContinuousClock.Instant) -> Bool {
        guard let lastQuery else { return true }
        return lastQuery.topics != topics
            || now - lastQuery.at >= (problem == nil ? Self.refreshInterval : Self.retryInterval)
    }

    /// Stores the result of a query. Where it failed, the previous value stays, or the one of the catalogue.
    mutating func update(
        _ response: Result<(retentions: [String: Double], refused: [String: KafkaError]), KafkaError>,
        of topics: Set<String>, at now: ContinuousClock.Instant
    ) {
        lastQuery = (topics, now)
        switch response {
        case .success(let result):
            let before = known.merging(declared) { first, _ in first }
            known = result.retentions.merging(before.filter { result.refused[$0.key] != nil }) { new, _ in new }
            let first = result.refused.min { $0.key < $1.key }
            let others = result.refused.count > 1 ? "; and of \(result.refused.count - 1) more" : ""
            problem = first.map { "\($0.key): \($0.value)\(others)" }
        // Also while the cluster has no controller: the previous values stay.
        case .failure(let error):
            known.merge(declared) { first, _ in first }
            problem = error.isNotSupported ? nil : "\(error)"
        }
    }
}

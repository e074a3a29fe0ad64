import Kafka
import Model

/// How long topics keep messages: asked once in a while, since it seldom changes.
struct Retentions: Sendable {
    private static let askedEvery = Duration.seconds(300)

    /// What the catalogue says of its own, where brokers do not tell.
    private let declared: [String: Double]
    private var asked: (topics: Set<String>, at: ContinuousClock.Instant)?
    /// By topic, in seconds.
    private(set) var known: [String: Double] = [:]

    init(of topics: [Topic]) {
        declared = Dictionary(topics.map { ($0.name, Double($0.retention.components.seconds)) }) { first, _ in first }
    }

    /// Whether these topics are to be asked about now.
    func isDue(_ topics: Set<String>, at now: ContinuousClock.Instant) -> Bool {
        guard let asked else { return true }
        return asked.topics != topics || now - asked.at >= Self.askedEvery
    }

    /// Takes in what brokers answered. Where they do not, what was known before goes on to be.
    mutating func take(
        _ answer: Result<[String: Double], KafkaError>, of topics: Set<String>, at now: ContinuousClock.Instant
    ) {
        switch answer {
        case .success(let told): known = told
        // Also while no controller is there: what brokers said before is better then.
        case .failure(let error) where error.isNotSupported: if known.isEmpty { known = declared }
        case .failure: return
        }
        asked = (topics, now)
    }
}

import Kafka
import Model

/// How long topics keep messages: asked once in a while, since it seldom changes.
struct Retentions: Sendable {
    private static let askedEvery = Duration.seconds(300)
    /// After a failure.
    private static let askedAgainAfter = Duration.seconds(60)

    /// What the catalogue says of its own, where brokers do not tell.
    private let declared: [String: Double]
    private var asked: (topics: Set<String>, at: ContinuousClock.Instant)?
    /// By topic, in seconds.
    private(set) var known: [String: Double] = [:]
    /// Why it is not known of all.
    private(set) var problem: String?

    init(of topics: [Topic]) {
        declared = Dictionary(topics.map { ($0.name, Double($0.retention.components.seconds)) }) { first, _ in first }
    }

    /// Whether these topics are to be asked about now.
    func isDue(_ topics: Set<String>, at now: ContinuousClock.Instant) -> Bool {
        guard let asked else { return true }
        return asked.topics != topics
            || now - asked.at >= (problem == nil ? Self.askedEvery : Self.askedAgainAfter)
    }

    /// Takes in what brokers answered. Where they do not, what was known before goes on to be, or what the catalogue
    /// says.
    mutating func take(
        _ answer: Result<(told: [String: Double], refused: [String: KafkaError]), KafkaError>, of topics: Set<String>,
        at now: ContinuousClock.Instant
    ) {
        asked = (topics, now)
        switch answer {
        case .success(let answer):
            let before = known.merging(declared) { known, _ in known }
            known = answer.told.merging(before.filter { answer.refused[$0.key] != nil }) { told, _ in told }
            let first = answer.refused.min { $0.key < $1.key }
            let others = answer.refused.count > 1 ? "; and of \(answer.refused.count - 1) more" : ""
            problem = first.map { "\($0.key): \($0.value)\(others)" }
        // Also while no controller is there: what brokers said before is better then.
        case .failure(let error):
            known.merge(declared) { known, _ in known }
            problem = error.isNotSupported ? nil : "\(error)"
        }
    }
}

import Kafka
import Model
import Testing

@testable import LagMonitor

struct RetentionsTests {
    private let topic = Topics.entry
    private let now = ContinuousClock.now

    /// To know it is a right of its own.
    @Test func whatBrokersRefuseToTellIsSaidAndTheCatalogueTellsIt() {
        var retentions = Retentions(of: [topic])
        #expect(retentions.isDue(["x", topic.name], at: now))
        let refused = KafkaError(timeout: "not allowed")
        retentions.take(
            .success((told: ["x": 5], refused: [topic.name: refused])), of: ["x", topic.name], at: now)
        #expect(retentions.known == ["x": 5, topic.name: Double(topic.retention.components.seconds)])
        #expect(retentions.problem?.hasPrefix("\(topic.name): ") == true)
        // It may be allowed soon.
        #expect(!retentions.isDue(["x", topic.name], at: now + .seconds(59)))
        #expect(retentions.isDue(["x", topic.name], at: now + .seconds(60)))
        retentions.take(.success((told: ["x": 5], refused: [:])), of: ["x", topic.name], at: now)
        #expect(retentions.known == ["x": 5] && retentions.problem == nil)
        #expect(!retentions.isDue(["x", topic.name], at: now + .seconds(299)))
        // What is known stays while nobody answers, and nobody is asked in every round.
        retentions.take(.failure(refused), of: ["x", topic.name], at: now)
        #expect(retentions.known["x"] == 5 && retentions.problem != nil)
        retentions.take(.success((told: [:], refused: ["x": refused])), of: ["x", topic.name], at: now)
        #expect(retentions.known == ["x": 5])
        #expect(!retentions.isDue(["x", topic.name], at: now + .seconds(1)))
    }
}

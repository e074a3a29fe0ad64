import Kafka
import Model
import Testing

@testable import LagMonitor

struct RetentionsTests {
    private let topic = Topics.entry
    private let now = ContinuousClock.now

    /// Reading it needs a permission of its own.
    @Test func refusedRetentionIsReportedAndTakenFromTheCatalogue() {
        var retentions = Retentions(of: [topic])
        #expect(retentions.isDue(["x", topic.name], at: now))
        let refused = KafkaError(timeout: "not allowed")
        retentions.update(
            .success((retentions: ["x": 5], refused: [topic.name: refused])), of: ["x", topic.name], at: now)
        #expect(retentions.known == ["x": 5, topic.name: Double(topic.retention.components.seconds)])
        #expect(retentions.problem?.hasPrefix("\(topic.name): ") == true)
        // The permission may be granted soon.
        #expect(!retentions.isDue(["x", topic.name], at: now + .seconds(59)))
        #expect(retentions.isDue(["x", topic.name], at: now + .seconds(60)))
        retentions.update(.success((retentions: ["x": 5], refused: [:])), of: ["x", topic.name], at: now)
        #expect(retentions.known == ["x": 5] && retentions.problem == nil)
        #expect(!retentions.isDue(["x", topic.name], at: now + .seconds(299)))
        // Known values stay while no broker responds, and queries are not repeated in every cycle.
        retentions.update(.failure(refused), of: ["x", topic.name], at: now)
        #expect(retentions.known["x"] == 5 && retentions.problem != nil)
        retentions.update(.success((retentions: [:], refused: ["x": refused])), of: ["x", topic.name], at: now)
        #expect(retentions.known == ["x": 5])
        #expect(!retentions.isDue(["x", topic.name], at: now + .seconds(1)))
    }
}

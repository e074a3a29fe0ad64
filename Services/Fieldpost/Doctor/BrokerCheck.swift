import Kafka
import Model

/// Checks that Kafka is usable and has the catalogue's topics.
struct BrokerCheck: DoctorCheck {
    let options: BrokerOptions

    func findings() async -> [DoctorFinding] {
        do {
            let admin = try options.admin()
            let facts = try BrokerFacts.load(admin)
            return BrokerFindings.findings(facts) + TopicFindings.findings(Topics.all, facts)
        } catch let error as KafkaError {
            return [
                .failure(
                    "Kafka: brokers", "\(error.name): \(error.message)",
                    do: error.advice ?? "check that the brokers run, and check FIELDPOST_KAFKA_BROKERS or --brokers")
            ]
        } catch {
            // The settings check reports the details.
            return [.failure("Kafka: brokers", "\(error)", do: "correct the setting and run the check again")]
        }
    }
}

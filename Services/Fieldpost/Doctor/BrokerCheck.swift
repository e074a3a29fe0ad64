import Kafka
import Model

/// Whether Kafka can be used, and has the catalogue's topics.
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
                    do: error.advice ?? "see that the brokers run, and FIELDPOST_KAFKA_BROKERS or --brokers says where")
            ]
        } catch {
            // What is wrong with the settings was told by the check of the settings.
            return [.failure("Kafka: brokers", "\(error)", do: "correct the setting, and ask again")]
        }
    }
}

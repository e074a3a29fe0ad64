import Kafka
import Model
import ServiceSettings

/// Whether every service can be started in this environment.
struct SettingsCheck: DoctorCheck {
    let services: [ServiceSettings]
    let variables: [String: String]

    func findings() async -> [DoctorFinding] {
        SettingsRules.findings(services, of: Services.all.map(\.name), variables: Array(variables.keys)) + [kafka]
    }

    /// The properties that librdkafka is to have: services look at them when they start.
    private var kafka: DoctorFinding {
        let name = "settings: librdkafka"
        do {
            let own = variables.filter { $0.key.hasPrefix("FIELDPOST_KAFKA_") }
            let configuration = try Configuration([.kafkaBrokers, .kafkaProperties], environment: own)
            let properties = try configuration.properties(under: "kafka.", problem: Property.problem)
            return .good(name, properties.isEmpty ? "no properties" : properties.keys.sorted().joined(separator: ", "))
        } catch {
            return .failure(name, "\(error)", do: "see librdkafka's CONFIGURATION.md for names and values")
        }
    }
}

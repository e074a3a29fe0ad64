import Kafka
import Model
import ServiceSettings

/// Checks that every service accepts its settings in this environment.
struct SettingsCheck: DoctorCheck {
    let services: [ServiceSettings]
    let variables: [String: String]

    func findings() async -> [DoctorFinding] {
        SettingsRules.findings(services, of: Services.all.map(\.name), variables: Array(variables.keys)) + [kafka]
    }

    /// Checks the properties of librdkafka, which services validate when they start.
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

/// An error of an integration's client or worker.
public enum IntegrationError: Error, Equatable, Sendable, CustomStringConvertible {
    /// A setting cannot be used: the description names it, and what is allowed.
    case invalidSetting(String)
    /// The gateway refused a request for a reason that a retry does not change, such as 401 for a removed key.
    case refused(status: Int, detail: String)
    /// Kafka rejected a property, or ended the consumer: the program must start again.
    case kafka(String)

    /// The error in one line.
    public var description: String {
        switch self {
        case .invalidSetting(let text): text
        case .refused(let status, let detail): "the gateway responded with status \(status): \(detail)"
        case .kafka(let text): "Kafka: \(text)"
        }
    }
}

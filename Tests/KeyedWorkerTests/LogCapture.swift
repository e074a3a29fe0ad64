import Logging
import Synchronization

/// Captures log messages.
final class LogCapture: Sendable {
    private let errorLines = Mutex<[String]>([])

    /// Message and metadata of each line of level `error` or above.
    var errors: [String] { errorLines.withLock { $0 } }

    var logger: Logger { Logger(label: "test") { _ in Handler(lines: self) } }

    private struct Handler: LogHandler {
        let lines: LogCapture
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            guard event.level >= .error else { return }
            let pairs = (event.metadata ?? [:]).map { "\($0)=\($1)" }.sorted()
            lines.errorLines.withLock { $0.append(([event.message.description] + pairs).joined(separator: " ")) }
        }
    }
}

package import Logging
import Synchronization

/// Captures log events, by default those of level `error` or above.
package final class LogCapture: Sendable {
    package struct Event: Sendable {
        package let message: String
        package let metadata: [String: String]
    }

    private let events = Mutex<[Event]>([])

    private let level: Logger.Level

    /// - Parameter level: The lowest level of captured events.
    package init(level: Logger.Level = .error) { self.level = level }

    package var errorEvents: [Event] { events.withLock { $0 } }

    /// Message and sorted metadata of each event.
    package var errors: [String] {
        errorEvents.map { event in
            ([event.message] + event.metadata.map { "\($0)=\($1)" }.sorted()).joined(separator: " ")
        }
    }

    package var logger: Logger { Logger(label: "test") { _ in Handler(capture: self) } }

    private struct Handler: LogHandler {
        let capture: LogCapture
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            guard event.level >= capture.level else { return }
            let captured = Event(
                message: event.message.description, metadata: (event.metadata ?? [:]).mapValues { "\($0)" })
            capture.events.withLock { $0.append(captured) }
        }
    }
}

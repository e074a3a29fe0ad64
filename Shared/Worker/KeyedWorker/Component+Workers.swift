import Essentials
import Kafka
package import Logging
package import Model
import ObjectStore
package import ServiceRuntime
import ServiceSettings

extension Component {
    /// Creates the workers of a service: `worker.count` members of its consumer group, each with its own handler. The
    /// group has the service's name; the settings are those of ``Setting/worker``.
    ///
    /// - Throws: For an invalid setting, or a property that librdkafka rejects.
    package static func workers<H: Handler>(
        _ context: Context, topics: [Topic], limits: WorkerLimits = WorkerLimits(),
        _ makeHandler: @escaping @Sendable (Logger) throws -> H
    ) throws -> Component {
        let configuration = context.configuration
        let group = WorkerConfiguration(
            group: context.name, topics: topics.map(\.name), brokers: try configuration.text(.kafkaBrokers),
            properties: try configuration.properties(under: "kafka.", problem: Property.problem),
            conninfo: try configuration.text(.databaseURL))
        let count = try configuration.integer(.workerCount)
        EnvironmentNameLoader.start(group.conninfo)
        return .worker(context.name, count: count, isFinal: isFinal) { control in
            let handler = try makeHandler(control.logger)
            var worker = try Worker(handler, at: group.member(control.index), limits: limits, logger: control.logger)
            try worker.run(control)
        }
    }

    /// Creates a loop on its own thread. After an error it is restarted, with a backoff from 100 ms to 5 s. A final
    /// error stops the process.
    package static func loop(_ name: String, _ body: @escaping @Sendable (WorkerControl) throws -> Void) -> Component {
        .worker(name, restart: Backoff(first: .milliseconds(100), waitMax: .seconds(5)), isFinal: isFinal, body)
    }

    /// Creates a loop of steps, restarted like ``loop(_:_:)``.
    ///
    /// - Parameters:
    ///   - make: Creates the loop's state, at the start and at each restart.
    ///   - step: Runs a step, and returns the time until the next one.
    package static func steps<State: ~Copyable>(
        _ name: String, make: @escaping @Sendable (Logger) throws -> State,
        step: @escaping @Sendable (inout State) throws -> Duration
    ) -> Component {
        loop(name) { control in
            var state = try make(control.logger)
            while !control.isStopping {
                let wait = try step(&state)
                control.progressed()
                control.pause(wait)
            }
        }
    }
}

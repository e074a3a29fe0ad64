import Essentials
import FoundationEssentials
import Glibc
package import Logging
import Metrics
package import ServiceSettings
package import Telemetry

/// The resources from which a service builds its components.
package struct Context: Sendable {
    /// The executable's name, for example `entry-submitter`.
    package let name: String
    /// The host name and process id that identify an instance of the service.
    package let instance: String
    package let configuration: Configuration
    package let logger: Logger
    package let health: Health
    package let metrics: MetricsRegistry
}

/// Runs a service until SIGTERM or SIGINT. Every service consists of one call of it.
///
/// It handles `--help`, `--version`, `--print-config` and `--print-settings`, reads the configuration, sets up logging
/// and metrics, and runs the components of `build` alongside the admin server.
///
/// - Parameters:
///   - settings: The service's settings; `Setting.runtime` is added.
///   - build: Creates the components; an error ends the process with status 1 and a one-line message.
/// - Returns: Never. The process exits with 0 after a clean shutdown, 1 if it cannot run or does not stop within
///   `shutdown.max`, 2 for invalid arguments.
package func serve(
    _ name: String, settings: [Setting], _ build: (Context) async throws -> [Component]
) async -> Never {
    let settings = settings + Setting.runtime
    let invocation: Invocation
    do {
        invocation = try Invocation(Array(CommandLine.arguments.dropFirst()))
    } catch {
        exitWithLine(name, error.message, status: 2)
    }
    do {
        switch invocation {
        case .help:
            print(Usage.help(name, settings))
            exit(0)
        case .version:
            print("\(name) \(fieldpostVersion)")
            exit(0)
        case .printSettings:
            print(try SettingDescription.json(settings))
            exit(0)
        case .printConfiguration(let file):
            print(Usage.effective(try Configuration(settings, file: file)))
            exit(0)
        case .run(let file):
            let configuration = try Configuration(settings, file: file)
            end(try await run(name, configuration, build))
        }
    } catch {
        exitWithLine(name, "\(error)", status: 1)
    }
}

private func run(
    _ name: String, _ configuration: Configuration, _ build: (Context) async throws -> [Component]
) async throws -> Int32 {
    let level = Logger.Level(rawValue: try configuration.text(.logLevel)) ?? .info
    let format = LineLogHandler.Format(rawValue: try configuration.text(.logFormat)) ?? .json
    LoggingSystem.bootstrap { label in
        LineLogHandler(label: label, service: name, level: level, format: format)
    }
    let metrics = MetricsRegistry()
    MetricsSystem.bootstrap(metrics)
    let context = Context(
        name: name, instance: "\(ProcessInfo.processInfo.hostName):\(getpid())", configuration: configuration,
        logger: Logger(label: name), health: Health(stallMax: try configuration.duration(.stallMax)), metrics: metrics)
    let admin = AdminServer.component(
        host: try configuration.text(.adminHost), port: try configuration.integer(.adminPort),
        health: context.health, metrics: metrics)
    let tracing = try Collector(configuration).map { collector in
        Component.service(
            "tracing",
            SpanExport(
                recorder: .process, collector: collector, text: SpanText(service: name, instance: context.instance),
                logger: context.logger))
    }
    return await run(
        [admin] + [tracing].compactMap(\.self) + (try await build(context)), logger: context.logger,
        health: context.health, shutdownMax: try configuration.duration(.shutdownMax))
}

private func exitWithLine(_ name: String, _ message: String, status: Int32) -> Never {
    let line = message.unicodeScalars.map { $0.value < 0x20 ? " " : String($0) }.joined()
    write(Array("\(name): \(line)\n".utf8), to: STDERR_FILENO)
    end(status)
}

/// Exits without the clean-up handlers of libraries, which other threads may still use.
private func end(_ status: Int32) -> Never {
    fflush(nil)
    _exit(status)
}

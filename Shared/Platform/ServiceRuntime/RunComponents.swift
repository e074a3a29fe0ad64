import Essentials
import FoundationEssentials
import Glibc
package import Logging
import NIOPosix
import ServiceLifecycle
import ServiceSettings
import Synchronization
import UnixSignals

/// Maximum number of event loop threads. More would not improve throughput on two cores, and each needs memory.
private let eventLoopThreadsMax = 4

/// Runs components until SIGTERM or SIGINT, or until one of them fails.
///
/// For programs without configuration and admin server; services call `serve`.
///
/// - Parameter shutdownMax: The timeout after which the process exits with status 1 and logs the components that did
///   not stop.
/// - Returns: The exit status: 0 after a clean shutdown, otherwise 1.
package func run(
    _ components: [Component], logger: Logger, health: Health, shutdownMax: Duration
) async -> Int32 {
    // Writing to a closed connection must fail with an error instead of a signal that terminates the process.
    signal(SIGPIPE, SIG_IGN)
    // The admin server alone needs one thread; only an API needs more.
    let serverCount = components.count { $0.usesEventLoops }
    let cores = ProcessInfo.processInfo.activeProcessorCount
    let threadCount = serverCount > 1 || components.count == 1 ? min(cores, eventLoopThreadsMax) : 1
    let environment = ComponentEnvironment(
        logger: logger, health: health, eventLoops: MultiThreadedEventLoopGroup(numberOfThreads: threadCount))
    let watch = ShutdownWatch(logger: logger, health: health, shutdownMax: shutdownMax)
    let services = components.map { component in
        let service = TrackedService(name: component.name, service: component.make(environment), watch: watch)
        return ServiceGroupConfiguration.ServiceConfiguration(service: service, serviceName: component.name)
    }
    let watching = ServiceGroupConfiguration.ServiceConfiguration(service: watch, serviceName: "shutdown")
    var quiet = logger
    // The group logs at error level what it also returns; the error is logged below.
    quiet.logLevel = .critical
    var configuration = ServiceGroupConfiguration(
        services: services + [watching], gracefulShutdownSignals: [.sigterm, .sigint], logger: quiet)
    configuration.maximumGracefulShutdownDuration = shutdownMax
    do {
        try await ServiceGroup(configuration: configuration).run()
        logger.info("stopped")
        return 0
    } catch {
        logger.critical("component failed, process stopped", metadata: ["error": .string(watch.failure ?? "\(error)")])
        return 1
    }
}

/// Tracks the running components, and terminates the process if they do not stop in time.
private final class ShutdownWatch: Service {
    private struct State {
        var running: Set<String> = []
        var failure: String?
    }

    private let state = Mutex(State())
    private let logger: Logger
    private let health: Health
    private let shutdownMax: Duration

    init(logger: Logger, health: Health, shutdownMax: Duration) {
        self.logger = logger
        self.health = health
        self.shutdownMax = shutdownMax
    }

    var failure: String? { state.withLock { $0.failure } }

    func began(_ name: String) { _ = state.withLock { $0.running.insert(name) } }

    func ended(_ name: String, failure: String?) {
        state.withLock { state in
            state.running.remove(name)
            if state.failure == nil, let failure { state.failure = failure }
        }
    }

    func run() async throws {
        // Returns at shutdown, throws if a component has failed; the timeout starts in both cases.
        try? await gracefulShutdown()
        health.shuttingDown()
        logger.info("shutting down", metadata: ["shutdownMax": .string(shutdownMax.settingText)])
        // A separate thread: components that do not stop may occupy all of Swift's.
        startThread(named: "shutdown") { self.exitAfterTimeout() }
    }

    private func exitAfterTimeout() {
        let deadline = SteadyClock.nanoseconds() + shutdownMax.milliseconds * 1_000_000
        while true {
            let left = (deadline - SteadyClock.nanoseconds()) / 1_000_000
            guard left > 0 else { break }
            poll(nil, 0, Int32(min(left, 1000)))
        }
        // The service group gets a moment to cancel the remaining components, but the process exits anyway.
        let left = state.withLock { $0.running.sorted() }
        logger.critical(
            "shutdown timed out",
            metadata: [
                "running": .string(left.joined(separator: ", ")), "shutdownMax": .string(shutdownMax.settingText),
            ])
        _exit(1)
    }
}

private struct TrackedService: Service {
    let name: String
    let service: any Service
    let watch: ShutdownWatch

    func run() async throws {
        watch.began(name)
        do {
            try await service.run()
            watch.ended(name, failure: nil)
        } catch {
            watch.ended(name, failure: "\(error)")
            throw error
        }
    }
}

import Essentials
import FoundationEssentials
import Glibc
package import Logging
import NIOPosix
import ServiceLifecycle
import ServiceSettings
import Synchronization
import UnixSignals

/// Event loop threads of one process. More of them would not serve two cores better, and each costs memory.
private let eventLoopThreadsMax = 4

/// Runs parts until SIGTERM or SIGINT, or until one of them fails.
///
/// For programs that are no services (they have no configuration or admin server); services call `serve`.
///
/// - Parameter shutdownMax: Once it has passed, the process exits with status 1 and names what did not stop.
/// - Returns: The exit status: 0 after a clean shutdown, else 1.
package func run(
    _ components: [Component], logger: Logger, health: Health, shutdownMax: Duration
) async -> Int32 {
    // A connection closed by the other side is an error of the write, not a signal that ends the process.
    signal(SIGPIPE, SIG_IGN)
    // The admin server alone needs one thread; only an API gets more.
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
    // The group logs at error level what is returned to us and logged below.
    quiet.logLevel = .critical
    var configuration = ServiceGroupConfiguration(
        services: services + [watching], gracefulShutdownSignals: [.sigterm, .sigint], logger: quiet)
    configuration.maximumGracefulShutdownDuration = shutdownMax
    do {
        try await ServiceGroup(configuration: configuration).run()
        logger.info("stopped")
        return 0
    } catch {
        logger.critical("stopped by a failure", metadata: ["error": .string(watch.failure ?? "\(error)")])
        return 1
    }
}

/// Knows which parts run, and ends the process when they do not stop in time.
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
        // Returns at a shutdown, throws when a part has failed: either way the time starts.
        try? await gracefulShutdown()
        health.shuttingDown()
        logger.info("shutting down", metadata: ["shutdownMax": .string(shutdownMax.settingText)])
        // A thread of its own: Swift's may all be held by what does not stop.
        startThread(named: "shutdown") { self.endInTime() }
    }

    private func endInTime() {
        let deadline = SteadyClock.nanoseconds() + shutdownMax.milliseconds * 1_000_000
        while true {
            let left = (deadline - SteadyClock.nanoseconds()) / 1_000_000
            guard left > 0 else { break }
            poll(nil, 0, Int32(min(left, 1000)))
        }
        // The group gets a moment to end by cancelling what is left, but the process ends anyway.
        let left = state.withLock { $0.running.sorted() }
        logger.critical(
            "did not stop in time",
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

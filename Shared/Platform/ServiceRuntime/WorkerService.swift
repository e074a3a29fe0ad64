import Essentials
import Logging
import Metrics
import ServiceLifecycle

/// Runs a worker's blocking body on separate threads instead of Swift's pool.
struct WorkerService: Service {
    let name: String
    let count: Int
    let restart: Backoff
    let isFinal: @Sendable (any Error) -> Bool
    let environment: ComponentEnvironment
    let body: @Sendable (WorkerControl) throws -> Void

    func run() async throws {
        let controls = (0..<count).map { index in
            let name = "\(name)/\(index)"
            var logger = environment.logger
            logger[metadataKey: "worker"] = .string(name)
            return WorkerControl(name: name, index: index, logger: logger, health: environment.health)
        }
        let stopAll: @Sendable () -> Void = { for control in controls { control.stop() } }
        let failure = await withTaskCancellationOrGracefulShutdownHandler {
            await withTaskGroup(of: (any Error)?.self) { group in
                for control in controls {
                    group.addTask {
                        let failure = await onThread(named: control.name) { loop(control) }
                        control.ended()
                        if failure != nil { stopAll() }
                        return failure
                    }
                }
                return await group.reduce(nil) { $0 ?? $1 }
            }
        } onCancelOrGracefulShutdown: {
            stopAll()
        }
        if let failure { throw failure }
    }

    /// Maximum number of distinct errors that are tracked, so that each is logged once until the body works again.
    private static let loggedCountMax = 100

    /// Runs the body until the process stops.
    ///
    /// - Returns: The error after which the body is not restarted.
    private func loop(_ control: WorkerControl) -> (any Error)? {
        let failures = Counter(label: "worker.failures", dimensions: [("worker", control.name)])
        var backoff = restart
        var logged: Set<String> = []
        while !control.isStopping {
            let start = SteadyClock.nanoseconds()
            var problem = "the worker returned before shutdown"
            do {
                control.removeStopHooks()
                try body(control)
                if control.isStopping { return nil }
            } catch {
                if isFinal(error) { return error }
                problem = "\(error)"
            }
            // After progress and a run longer than the maximum backoff, a failure counts as new.
            let isNew = Duration.nanoseconds(SteadyClock.nanoseconds() - start) > restart.waitMax
            if control.takeHasProgressed(), isNew {
                backoff.succeeded()
                logged = []
            }
            control.impaired(problem)
            failures.increment()
            let wait = backoff.failed(random: Double.random(in: 0..<1))
            if logged.count >= Self.loggedCountMax { logged = [] }
            if logged.insert(problem).inserted {
                control.logger.error("worker failed, will restart", metadata: ["error": .string(problem)])
            }
            control.pause(wait)
        }
        return nil
    }
}

/// Runs `body` on a new thread and waits for its end without occupying a thread of Swift's pool.
func onThread<T: Sendable>(named name: String, _ body: @escaping @Sendable () -> T) async -> T {
    await withCheckedContinuation { continuation in
        startThread(named: name) { continuation.resume(returning: body()) }
    }
}

import BackendConnections
public import Backends
import Catalogues
import Essentials
import HTTPClient
import KeyedWorker
import Model
import Secrets
import ServiceRuntime
import ServiceSettings

/// The service `backend-poller`.
///
/// Synchronizes the database with the back ends. The scheduler writes polls; workers consume `poll.events`, read
/// changes or a person's choices and records, and write the differences. `entry-submitter` decides how a record affects
/// its entry.
public enum BackendPollerService {
    /// Runs the service until SIGTERM or SIGINT, then exits the process.
    ///
    /// - Parameter adapters: The kinds of back ends of other packages, in addition to the built-in ones.
    public static func run(adapters: [BackendKind] = []) async -> Never {
        BackendKind.add(adapters)
        await serve("backend-poller", settings: Settings.all) { context in
            let configuration = context.configuration
            var limits = WorkerLimits()
            limits.inFlightMax = try configuration.integer(Settings.inFlightMax)
            // Each result contains all reporting data of a person.
            limits.resultsHoldSlots = true
            let conninfo = try configuration.text(.databaseURL)
            let staleMax = try configuration.duration(Settings.staleMax)
            let fetcher = RealmFetcher(
                BackendRegistry(
                    client: Client(), secrets: try SecretBox(configuration.list(.secretKeys)),
                    callMax: try configuration.duration(.backendCallMax)),
                entryDays: try configuration.integer(Settings.entryDays),
                aheadDays: try configuration.integer(Settings.aheadDays))
            return [
                .steps("scheduler") { logger in
                    try Scheduler(conninfo: conninfo, fetcher: fetcher, staleMax: staleMax, logger: logger)
                } step: { (scheduler: inout Scheduler) in
                    _ = try scheduler.step(now: Timestamp.now())
                    return .milliseconds(500)
                },
                try .workers(context, topics: [Topics.poll], limits: limits) { PollHandler(fetcher, logger: $0) },
            ]
        }
    }
}

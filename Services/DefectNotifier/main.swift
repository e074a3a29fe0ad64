// Notifies people of defects that were assigned to them or changed, and mirrors their defects. The scheduler writes
// polls. Workers consume them from `defect-poll.events`, read HCL Compass with the environment's account or with
// people's own logins, and write notices and mirrors.

import BackendConnections
import Essentials
import HTTPClient
import KeyedWorker
import Model
import Secrets
import ServiceRuntime
import ServiceSettings

await serve("defect-notifier", settings: Settings.all) { context in
    let configuration = context.configuration
    let conninfo = try configuration.text(.databaseURL)
    let comparisonInterval = try configuration.duration(Settings.comparisonInterval)
    let staleMax = try configuration.duration(Settings.staleMax)
    var limits = WorkerLimits()
    limits.inFlightMax = try configuration.integer(Settings.inFlightMax)
    let trackers = TrackerDirectory(
        DefectTrackerRegistry(
            client: Client(), secrets: try SecretBox(configuration.list(.secretKeys)),
            callMax: try configuration.duration(.backendCallMax)), logger: context.logger)
    return [
        .steps("scheduler") { logger in
            try Scheduler(
                conninfo: conninfo, comparisonInterval: comparisonInterval, staleMax: staleMax, logger: logger)
        } step: { (scheduler: inout Scheduler) in
            _ = try scheduler.step(now: Timestamp.now())
            return .milliseconds(500)
        },
        try .workers(context, topics: [Topics.defectPoll], limits: limits) { DefectHandler(trackers, logger: $0) },
    ]
}

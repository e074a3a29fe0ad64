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
    let group = try WorkerConfiguration(context, topics: [Topics.defectPoll])
    var limits = WorkerLimits()
    limits.inFlightMax = try configuration.integer(Settings.inFlightMax)
    let ready = limits
    let trackers = TrackerDirectory(
        DefectTrackerRegistry(
            client: Client(), secrets: try SecretBox(configuration.list(.secretKeys)),
            callMax: try configuration.duration(.backendCallMax)), logger: context.logger)
    return [
        .worker("scheduler", restart: Backoff(first: .milliseconds(100), waitMax: .seconds(5)), isFinal: isFinal) {
            control in
            var scheduler = try Scheduler(
                conninfo: conninfo, comparisonInterval: comparisonInterval, staleMax: staleMax,
                logger: control.logger)
            while !control.isStopping {
                _ = try scheduler.step(now: Timestamp.now())
                control.progressed()
                control.pause(.milliseconds(500))
            }
        },
        .worker("defect-notifier", count: try configuration.integer(.workerCount), isFinal: isFinal) { control in
            let handler = DefectHandler(trackers, logger: control.logger)
            var worker = try Worker(
                handler, at: group.member(control.index), limits: ready, logger: control.logger)
            try worker.run(control)
        },
    ]
}

// Synchronizes the database with the back ends. The scheduler writes polls; workers consume `poll.events`, read changes
// or a person's choices and records, and write the differences. `entry-submitter` decides how a record affects its
// entry.

import BackendConnections
import Catalogues
import Essentials
import HTTPClient
import KeyedWorker
import Model
import Secrets
import ServiceRuntime
import ServiceSettings

await serve("backend-poller", settings: Settings.all) { context in
    let configuration = context.configuration
    var limits = WorkerLimits()
    limits.inFlightMax = try configuration.integer(Settings.inFlightMax)
    // Each result contains all reporting data of a person.
    limits.resultsHoldSlots = true
    let conninfo = try configuration.text(.databaseURL)
    let staleMax = try configuration.duration(Settings.staleMax)
    let group = try WorkerConfiguration(context, topics: [Topics.poll])
    let fetcher = RealmFetcher(
        BackendRegistry(
            client: Client(), secrets: try SecretBox(configuration.list(.secretKeys)),
            callMax: try configuration.duration(.backendCallMax)),
        entryDays: try configuration.integer(Settings.entryDays),
        aheadDays: try configuration.integer(Settings.aheadDays))
    return [
        .worker("scheduler", restart: Backoff(first: .milliseconds(100), waitMax: .seconds(5)), isFinal: isFinal) {
            control in
            var scheduler = try Scheduler(
                conninfo: conninfo, fetcher: fetcher, staleMax: staleMax, logger: control.logger)
            while !control.isStopping {
                _ = try scheduler.step(now: Timestamp.now())
                control.progressed()
                control.pause(.milliseconds(500))
            }
        },
        .worker("backend-poller", count: try configuration.integer(.workerCount), isFinal: isFinal) {
            [limits] control in
            let handler = PollHandler(fetcher, logger: control.logger)
            var worker = try Worker(handler, at: group.member(control.index), limits: limits, logger: control.logger)
            try worker.run(control)
        },
    ]
}

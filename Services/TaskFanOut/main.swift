// Keeps the one copy of each master task where its team or its assignee sees it, and carries completion back.
// Reads `task.events` and `team.events`.

import ServiceSettings
import Essentials
import KeyedWorker
import Model
import ServiceRuntime

await serve("task-fan-out", settings: Settings.all) { context in
    let configuration = context.configuration
    let keep = try KeepLimits(configuration)
    let interval = try configuration.duration(Settings.sweepInterval)
    let conninfo = try configuration.text(.databaseURL)
    let place = try WorkerPlace(context, topics: [Topics.task, Topics.team])
    return [
        .worker("sweep", restart: Backoff(first: .milliseconds(100), waitMax: .seconds(5)), isFinal: isFinal) {
            control in
            var sweep = try Sweep(conninfo: conninfo, keep: keep, interval: interval, logger: control.logger)
            while !control.isStopping {
                let wait = try sweep.step()
                control.progressed()
                control.pause(wait)
            }
        },
        .worker("task-fan-out", count: try configuration.integer(.workerCount), isFinal: isFinal) { control in
            var worker = try Worker(
                TaskHandler(keep: keep), at: place.member(control.index), limits: WorkerLimits(),
                logger: control.logger)
            try worker.run(control)
        },
    ]
}

// Maintains the one copy of each task in the realm of its team or its assignee, and merges completions into the master.
// Consumes `task.events` and `team.events`.

import Essentials
import KeyedWorker
import Model
import ServiceRuntime
import ServiceSettings

await serve("task-fan-out", settings: Settings.all) { context in
    let configuration = context.configuration
    let retention = try TaskRetention(configuration)
    let interval = try configuration.duration(Settings.sweepInterval)
    let conninfo = try configuration.text(.databaseURL)
    let group = try WorkerConfiguration(context, topics: [Topics.task, Topics.team])
    return [
        .worker("sweep", restart: Backoff(first: .milliseconds(100), waitMax: .seconds(5)), isFinal: isFinal) {
            control in
            var sweep = try TaskSweep(
                conninfo: conninfo, retention: retention, interval: interval, logger: control.logger)
            while !control.isStopping {
                let wait = try sweep.step()
                control.progressed()
                control.pause(wait)
            }
        },
        .worker("task-fan-out", count: try configuration.integer(.workerCount), isFinal: isFinal) { control in
            var worker = try Worker(
                TaskHandler(retention: retention), at: group.member(control.index), limits: WorkerLimits(),
                logger: control.logger)
            try worker.run(control)
        },
    ]
}

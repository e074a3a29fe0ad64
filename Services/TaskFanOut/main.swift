// Maintains the one copy of each task in the realm of its team or its assignee, merges completions into the master,
// keeps notes equal on both sides, and notifies people of their tasks.
// Consumes `task.events` and `team.events`.

import KeyedWorker
import Model
import ServiceRuntime
import ServiceSettings

await serve("task-fan-out", settings: Settings.all) { context in
    let configuration = context.configuration
    let retention = try TaskRetention(configuration)
    let interval = try configuration.duration(Settings.sweepInterval)
    let conninfo = try configuration.text(.databaseURL)
    return [
        .steps("sweep") { logger in
            try TaskSweep(conninfo: conninfo, retention: retention, interval: interval, logger: logger)
        } step: { sweep in
            try sweep.step()
        },
        try .workers(context, topics: [Topics.task, Topics.team]) { _ in TaskHandler(retention: retention) },
    ]
}

// Keeps the one copy of each master task where its team or its assignee sees it, and carries completion back.
// Reads `task.events` and `team.events`.

import Model
import Runtime
import Work

await serve("task-fan-out", settings: Setting.worker) { context in
    let configuration = context.configuration
    let place = try WorkerPlace(context, topics: [Topics.task, Topics.team])
    return [
        .worker("task-fan-out", count: try configuration.integer(.workerCount), isFinal: isFinal) { control in
            var worker = try Worker(
                TaskHandler(), at: place.member(control.index), limits: WorkerLimits(), logger: control.logger)
            try worker.run(control)
        }
    ]
}

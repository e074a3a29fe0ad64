// Copies people's last locations to managers and to their teams. Consumes `location.events` and `team.events`.

import KeyedWorker
import Model
import ServiceRuntime
import ServiceSettings

await serve("location-fan-out", settings: Setting.worker) { context in
    let configuration = context.configuration
    let group = try WorkerConfiguration(context, topics: [Topics.location, Topics.team])
    return [
        .worker("location-fan-out", count: try configuration.integer(.workerCount), isFinal: isFinal) { control in
            var worker = try Worker(
                LocationHandler(), at: group.member(control.index), limits: WorkerLimits(), logger: control.logger)
            try worker.run(control)
        }
    ]
}

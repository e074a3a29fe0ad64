// Maintains the recipients' copies of shared appointments and notes. Consumes `share.events`.

import KeyedWorker
import Model
import ServiceRuntime
import ServiceSettings

await serve("share-fan-out", settings: Setting.worker) { context in
    let configuration = context.configuration
    let group = try WorkerConfiguration(context, topics: [Topics.share])
    return [
        .worker("share-fan-out", count: try configuration.integer(.workerCount), isFinal: isFinal) { control in
            var worker = try Worker(
                ShareHandler(), at: group.member(control.index), limits: WorkerLimits(), logger: control.logger)
            try worker.run(control)
        }
    ]
}

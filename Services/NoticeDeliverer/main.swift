// Delivers notices by webhook, e-mail and web push, as each person chose. Consumes `notice.events`.

import Essentials
import HTTPClient
import KeyedWorker
import Model
import Secrets
import ServiceRuntime
import ServiceSettings

await serve("notice-deliverer", settings: Settings.all) { context in
    let configuration = context.configuration
    let conninfo = try configuration.text(.databaseURL)
    let retention = try configuration.duration(Settings.keep)
    let caFile = try configuration.text(Settings.caFile)
    let group = try WorkerConfiguration(context, topics: [Topics.notice])
    let metrics = DeliveryMetrics()
    let clients = DeliveryClientFactory(
        caFile: caFile.isEmpty ? nil : caFile, callMax: try configuration.duration(Settings.callMax),
        secrets: try SecretBox(configuration.list(.secretKeys)), metrics: metrics)
    var limits = DeliveryHandler.Limits()
    limits.ageMax = try configuration.duration(Settings.ageMax)
    limits.retryFirst = try configuration.duration(Settings.retryFirst)
    let deliveryLimits = limits
    return [
        .worker("sweep", restart: Backoff(first: .milliseconds(100), waitMax: .seconds(5)), isFinal: isFinal) {
            control in
            var sweep = try DeliverySweep(conninfo: conninfo, retention: retention, metrics: metrics)
            while !control.isStopping {
                let wait = try sweep.step()
                control.progressed()
                control.pause(wait)
            }
        },
        .worker("notice-deliverer", count: try configuration.integer(.workerCount), isFinal: isFinal) { control in
            let handler = DeliveryHandler(clients, limits: deliveryLimits, metrics: metrics, logger: control.logger)
            var worker = try Worker(
                handler, at: group.member(control.index), limits: WorkerLimits(), logger: control.logger)
            try worker.run(control)
        },
    ]
}

// Delivers notices by webhook, e-mail and push message, as each person chose. Consumes `notice.events`.

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
    let metrics = DeliveryMetrics()
    let clients = DeliveryClientFactory(
        caFile: caFile.isEmpty ? nil : caFile, callMax: try configuration.duration(Settings.callMax),
        secrets: try SecretBox(configuration.list(.secretKeys)), metrics: metrics)
    var limits = DeliveryHandler.Limits()
    limits.ageMax = try configuration.duration(Settings.ageMax)
    limits.retryFirst = try configuration.duration(Settings.retryFirst)
    return [
        .steps("sweep") { _ in
            try DeliverySweep(conninfo: conninfo, retention: retention, metrics: metrics)
        } step: { sweep in
            try sweep.step()
        },
        try .workers(context, topics: [Topics.notice]) { [limits] logger in
            DeliveryHandler(clients, limits: limits, metrics: metrics, logger: logger)
        },
    ]
}

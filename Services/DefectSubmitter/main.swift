// Performs people's defect commands at HCL Compass with their own logins, writes the outcomes, and checks people's
// logins. Consumes `defect.events`; the only writer of `defect.attempt`.

import HTTPClient
import KeyedWorker
import Model
import Secrets
import ServiceRuntime
import ServiceSettings

await serve("defect-submitter", settings: Settings.all) { context in
    let configuration = context.configuration
    let rule = try Settings.rule(configuration)
    let limits = try Settings.limits(configuration)
    let callMax = try configuration.duration(.backendCallMax)
    let trackers = OwnLoginTrackers(
        Client(), secrets: try SecretBox(configuration.list(.secretKeys)), callMax: callMax)
    let group = try WorkerConfiguration(context, topics: [Topics.defect])
    return [
        .worker("defect-submitter", count: try configuration.integer(.workerCount), isFinal: isFinal) { control in
            let handler = CommandHandler(rule: rule, trackers: trackers, callMax: callMax)
            var worker = try Worker(handler, at: group.member(control.index), limits: limits, logger: control.logger)
            try worker.run(control)
        }
    ]
}

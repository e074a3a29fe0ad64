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
    let trackers = OwnLoginTrackers(Client(), secrets: try SecretBox(configuration.list(.secretKeys)), callMax: callMax)
    return [
        try .workers(context, topics: [Topics.defect], limits: limits) { _ in
            CommandHandler(rule: rule, trackers: trackers, callMax: callMax)
        }
    ]
}

// Does at HCL Compass what people want to be done with defects, as themselves, and says what came of it; says whether
// their own logins are good. Reads `defect.events`; the only writer of `defect.attempt`.

import ServiceSettings
import HTTPClient
import KeyedWorker
import Model
import Secrets
import ServiceRuntime

await serve("defect-submitter", settings: Settings.all) { context in
    let configuration = context.configuration
    let rule = try Settings.rule(configuration)
    let limits = try Settings.limits(configuration)
    let callMax = try configuration.duration(.backendCallMax)
    let trackers = OwnTrackers(
        Client(), secrets: try SecretBox(configuration.list(.secretKeys)), callMax: callMax)
    let place = try WorkerPlace(context, topics: [Topics.defect])
    return [
        .worker("defect-submitter", count: try configuration.integer(.workerCount), isFinal: isFinal) { control in
            let handler = CommandHandler(rule: rule, trackers: trackers, callMax: callMax)
            var worker = try Worker(handler, at: place.member(control.index), limits: limits, logger: control.logger)
            try worker.run(control)
        }
    ]
}

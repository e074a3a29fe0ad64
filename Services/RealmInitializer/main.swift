// Initialises new people's realms from the back end (trees, contexts, templates, existing entries), then sets
// `isInitialized`. Consumes `realm.events`.

import BackendConnections
import Catalogues
import HTTPClient
import KeyedWorker
import Model
import Secrets
import ServiceRuntime
import ServiceSettings

await serve("realm-initializer", settings: Settings.all) { context in
    let configuration = context.configuration
    var limits = WorkerLimits()
    limits.inFlightMax = try configuration.integer(Settings.inFlightMax)
    // Each result holds everything that a person may report on.
    limits.resultsHoldSlots = true
    let group = try WorkerConfiguration(context, topics: [Topics.realm])
    let fetcher = RealmFetcher(
        BackendRegistry(
            client: Client(), secrets: try SecretBox(configuration.list(.secretKeys)),
            callMax: try configuration.duration(.backendCallMax)),
        entryDays: try configuration.integer(Settings.entryDays))
    return [
        .worker("realm-initializer", count: try configuration.integer(.workerCount), isFinal: isFinal) {
            [limits] control in
            var worker = try Worker(
                RealmHandler(fetcher, logger: control.logger), at: group.member(control.index), limits: limits,
                logger: control.logger)
            try worker.run(control)
        }
    ]
}

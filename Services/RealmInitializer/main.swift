// Fills a new user's realm from the back end: trees, contexts, templates, existing entries; then sets `isInitialized`.
// Reads `realm.events`.

import ServiceSettings
import BackendConnections
import Catalogues
import HTTPClient
import KeyedWorker
import Model
import Secrets
import ServiceRuntime

await serve("realm-initializer", settings: Settings.all) { context in
    let configuration = context.configuration
    var limits = WorkerLimits()
    limits.inFlightMax = try configuration.integer(Settings.inFlightMax)
    // Each answer holds all that a person may report on.
    limits.answersKeepPlaces = true
    let place = try WorkerPlace(context, topics: [Topics.realm])
    let fetcher = RealmFetcher(
        BackendRegistry(
            client: Client(), secrets: try SecretBox(configuration.list(.secretKeys)),
            callMax: try configuration.duration(.backendCallMax)),
        entryDays: try configuration.integer(Settings.entryDays))
    return [
        .worker("realm-initializer", count: try configuration.integer(.workerCount), isFinal: isFinal) {
            [limits] control in
            var worker = try Worker(
                RealmHandler(fetcher, logger: control.logger), at: place.member(control.index), limits: limits,
                logger: control.logger)
            try worker.run(control)
        }
    ]
}

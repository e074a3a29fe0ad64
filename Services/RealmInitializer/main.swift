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
    let fetcher = RealmFetcher(
        BackendRegistry(
            client: Client(), secrets: try SecretBox(configuration.list(.secretKeys)),
            callMax: try configuration.duration(.backendCallMax)),
        entryDays: try configuration.integer(Settings.entryDays))
    return [
        try .workers(context, topics: [Topics.realm], limits: limits) { RealmHandler(fetcher, logger: $0) }
    ]
}

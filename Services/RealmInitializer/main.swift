// Fills a new user's realm from the back end: trees, contexts, templates, existing entries; then sets `isInitialized`.
// Reads `realm.events`.

import Catalogues
import Environments
import HTTP
import Kafka
import Model
import Runtime
import Work

await serve("realm-initializer", settings: Settings.all) { context in
    let configuration = context.configuration
    var limits = WorkerLimits()
    limits.inFlightMax = try configuration.integer(Settings.inFlightMax)
    // Each answer holds all that a person may report on.
    limits.answersKeepPlaces = true
    let place = WorkerPlace(
        group: "realm-initializer", topics: [Topics.realm.name], brokers: try configuration.text(.kafkaBrokers),
        properties: try configuration.properties(under: "kafka.", problem: Property.problem),
        conninfo: try configuration.text(.databaseURL))
    let fetcher = RealmFetcher(
        BackendRegistry(
            client: Client(), secrets: try SecretBox(configuration.list(.secretKeys)),
            callMax: try configuration.duration(Settings.callMax)),
        entryDays: try configuration.integer(Settings.entryDays))
    return [
        .worker("realm-initializer", count: try configuration.integer(.workerCount), isFinal: isFinal) {
            [limits] control in
            var worker = try Worker(
                RealmHandler(fetcher), at: place.member(control.index), limits: limits, logger: control.logger)
            try worker.run(control)
        }
    ]
}

import BackendConnections
public import Backends
import Catalogues
import HTTPClient
import KeyedWorker
import Model
import Secrets
import ServiceRuntime
import ServiceSettings

/// The service `realm-initializer`.
///
/// Initialises new people's realms from the back end (trees, contexts, templates, existing entries), then sets
/// `isInitialized`. Consumes `realm.events`.
public enum RealmInitializerService {
    /// Runs the service until SIGTERM or SIGINT, then exits the process.
    ///
    /// - Parameter adapters: The kinds of back ends of other packages, in addition to the built-in ones.
    public static func run(adapters: [BackendKind] = []) async -> Never {
        BackendKind.add(adapters)
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
    }
}

import BackendConnections
public import Backends
import HTTPClient
import KeyedWorker
import Model
import Secrets
import ServiceRuntime
import ServiceSettings

/// The service `entry-submitter`.
///
/// Submits entries to their back ends, once each, and records the results.
/// Consumes `entry.events`; the only writer of an entry's status and of `submission.ledger`.
public enum EntrySubmitterService {
    /// Runs the service until SIGTERM or SIGINT, then exits the process.
    ///
    /// - Parameter adapters: The kinds of back ends of other packages, in addition to the built-in ones.
    public static func run(adapters: [BackendKind] = []) async -> Never {
        BackendKind.add(adapters)
        await serve("entry-submitter", settings: Settings.all) { context in
            let configuration = context.configuration
            let callMax = try configuration.duration(.backendCallMax)
            let rule = SubmissionRule(
                lease: callMax * SubmissionRule.leaseCallsMax,
                settleMin: try configuration.duration(Settings.settleMin),
                retryMin: try configuration.duration(Settings.retryMin),
                retryMax: try configuration.duration(Settings.retryMax)
            )
            let adapters = BackendRegistry(
                client: Client(), secrets: try SecretBox(configuration.list(.secretKeys)), callMax: callMax)
            let limits = try Settings.limits(configuration)
            return [
                try .workers(context, topics: [Topics.entry], limits: limits) { _ in
                    EntryHandler(rule: rule, adapters: adapters)
                }
            ]
        }
    }
}

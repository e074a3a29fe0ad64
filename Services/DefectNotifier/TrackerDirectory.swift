import BackendProtocol
import Environments
import Logging
import Model
import Postgres
import Synchronization

/// The sessions with all environments' trackers: a login, and where queries are made, serve all readings of this
/// process.
final class TrackerDirectory: Sendable {
    private let registry: DefectTrackerRegistry
    private let logger: Logger
    private let known = Mutex<[EnvironmentID: (stored: DefectTracker, session: TrackerSession)]>([:])

    init(_ registry: DefectTrackerRegistry, logger: Logger) {
        self.registry = registry
        self.logger = logger
    }

    /// How an environment's tracker is read: by the same session as long as its settings stay the same.
    ///
    /// - Throws: `MissingBackend`, which says what is not there, or `PostgresError`.
    func session(of environment: EnvironmentID, on connection: inout Connection) throws -> TrackerSession {
        guard let stored = try DefectTracker.load(environment, on: &connection) else {
            throw MissingBackend("environment \(environment) has no tracker of defects")
        }
        if let entry = known.withLock({ $0[environment] }), entry.stored == stored { return entry.session }
        let session = TrackerSession(try registry.client(of: environment, on: &connection), logger: logger)
        known.withLock { $0[environment] = (stored, session) }
        return session
    }
}

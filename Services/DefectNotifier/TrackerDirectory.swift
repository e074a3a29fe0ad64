import BackendConnections
import BackendProtocol
import Logging
import Model
import Postgres
import Synchronization

/// The sessions with all environments' trackers, by their accounts and by people's own logins: a login, and where
/// queries are made, serve all readings of this process.
final class TrackerDirectory: Sendable {
    private let registry: DefectTrackerRegistry
    private let logger: Logger
    private let known = Mutex<[EnvironmentID: (stored: DefectTracker, session: TrackerSession)]>([:])
    private let own = KeptByPerson<TrackerSession>()

    init(_ registry: DefectTrackerRegistry, logger: Logger) {
        self.registry = registry
        self.logger = logger
    }

    /// How an environment's tracker is read: by the same session as long as its settings stay the same.
    ///
    /// - Throws: `MissingBackend`, which says what is not there, or `PostgresError`.
    func reader(
        of environment: EnvironmentID, on connection: inout Connection
    ) throws -> @Sendable (Reading) async -> ReadAnswer {
        guard let stored = try DefectTracker.load(environment, on: &connection) else {
            throw MissingBackend("environment \(environment) has no tracker of defects")
        }
        let account = stored.account == nil ? nil : try session(of: stored, on: &connection)
        return { reading in
            do throws(MissingBackend) {
                if let own = reading.own { return await (try self.session(of: own, at: stored)).read(reading) }
            } catch {
                return ReadAnswer(
                    reading: reading, result: .failure(.notProcessed(reason: error.description, retryAfter: nil)))
            }
            guard let account else {
                let reason = "environment \(environment) has no account for its defects"
                return ReadAnswer(reading: reading, result: .failure(.notProcessed(reason: reason, retryAfter: nil)))
            }
            return await account.read(reading)
        }
    }

    /// What keeps a person's login from being used; `nil`: nothing.
    func problem(with reader: OwnReader, at tracker: DefectTracker) -> String? {
        do throws(MissingBackend) {
            _ = try session(of: reader, at: tracker)
            return nil
        } catch {
            return error.description
        }
    }

    private func session(of stored: DefectTracker, on connection: inout Connection) throws -> TrackerSession {
        let environment = stored.environment
        if let entry = known.withLock({ $0[environment] }), entry.stored == stored { return entry.session }
        let session = TrackerSession(try registry.client(of: environment, on: &connection), logger: logger)
        known.withLock { $0[environment] = (stored, session) }
        return session
    }

    private func session(
        of reader: OwnReader, at tracker: DefectTracker
    ) throws(MissingBackend) -> TrackerSession {
        try own.value(of: reader.person.realm, reader.login, at: tracker) { () throws(MissingBackend) in
            TrackerSession(
                try registry.client(of: reader.person.realm, reader.login, at: tracker), logger: logger)
        }
    }
}

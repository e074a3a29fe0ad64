import BackendConnections
import BackendProtocol
import Logging
import Model
import Postgres
import Synchronization

/// The sessions with all environments' trackers, of accounts and of people's own logins. All polls of this process
/// share a session's login and query folder.
final class TrackerDirectory: Sendable {
    private let registry: DefectTrackerRegistry
    private let logger: Logger
    private let sessions = Mutex<[EnvironmentID: (stored: DefectTracker, session: TrackerSession)]>([:])
    private let own = PersonalLoginCache<TrackerSession>()

    init(_ registry: DefectTrackerRegistry, logger: Logger) {
        self.registry = registry
        self.logger = logger
    }

    /// Returns a reader of an environment's tracker. It uses one session as long as the tracker's settings stay the
    /// same.
    ///
    /// - Throws: `MissingBackend`, with the missing setting, or `PostgresError`.
    func reader(
        of environment: EnvironmentID, on connection: inout Connection
    ) throws -> @Sendable (PageRequest) async -> PageResponse {
        guard let stored = try DefectTracker.load(environment, on: &connection) else {
            throw MissingBackend("environment \(environment) has no defect tracker")
        }
        let account = stored.account == nil ? nil : try session(of: stored, on: &connection)
        return { request in
            do throws(MissingBackend) {
                if let own = request.own { return await (try self.session(of: own, at: stored)).read(request) }
            } catch {
                return PageResponse(
                    request: request, result: .failure(.notProcessed(reason: error.description, retryAfter: nil)))
            }
            guard let account else {
                let reason = "environment \(environment) has no account in its defect tracker"
                return PageResponse(request: request, result: .failure(.notProcessed(reason: reason, retryAfter: nil)))
            }
            return await account.read(request)
        }
    }

    /// Returns the reason why a person's login cannot be used; `nil`: it can.
    func unusableReason(of reader: OwnLoginReader, at tracker: DefectTracker) -> String? {
        do throws(MissingBackend) {
            _ = try session(of: reader, at: tracker)
            return nil
        } catch {
            return error.description
        }
    }

    private func session(of stored: DefectTracker, on connection: inout Connection) throws -> TrackerSession {
        let environment = stored.environment
        if let entry = sessions.withLock({ $0[environment] }), entry.stored == stored { return entry.session }
        let session = TrackerSession(try registry.client(of: environment, on: &connection), logger: logger)
        sessions.withLock { $0[environment] = (stored, session) }
        return session
    }

    private func session(
        of reader: OwnLoginReader, at tracker: DefectTracker
    ) throws(MissingBackend) -> TrackerSession {
        try own.value(of: reader.person.realm, reader.login, at: tracker) { () throws(MissingBackend) in
            TrackerSession(try registry.client(of: reader.person.realm, reader.login, at: tracker), logger: logger)
        }
    }
}

import Catalogues
import Model
import Postgres

/// A full comparison with an external system, which a service repeats at an interval, requested ahead of time.
struct Reconciliation {
    private let service: ServiceDescription
    private let environment: EnvironmentID

    init(_ service: ServiceDescription, in environment: EnvironmentID) {
        (self.service, self.environment) = (service, environment)
    }

    /// Whether it compares the back end; otherwise the defect tracker.
    private var comparesBackend: Bool { service == Services.backendPoller }

    /// Returns the statements of one transaction that request the comparison and invalidate these keys.
    func request(for keys: [String]) -> [Statement] {
        if comparesBackend {
            // The keys of `catalogues` name people and catalogues.
            let paths = keys.compactMap { RealmPath($0) }
            return AudienceStore.unplace(paths.compactMap(\.email), in: environment)
                + AudienceStore.recount(paths.compactMap(\.catalogueID), in: environment) + [
                    """
                    UPDATE poll.run SET started_at = '-infinity', full_started_at = NULL
                    WHERE environment_id = \(environment.rawValue)
                    """
                ]
        }
        return [
            """
            UPDATE defect.run SET asked_for = true
            WHERE environment_id = \(environment.rawValue) AND scope = 'comparison'
            """,
            """
            UPDATE defect.own_run SET asked_for = true
            WHERE environment_id = \(environment.rawValue) AND scope = 'comparison' AND realm_id IN (\(realms(keys)))
            """,
        ]
    }

    /// Whether it was requested and has not finished. Rows: one boolean.
    func isOpen(for keys: [String]) -> Statement {
        if comparesBackend {
            return """
                SELECT EXISTS (SELECT FROM backend.connection c LEFT JOIN poll.run r USING (environment_id)
                    WHERE c.environment_id = \(environment.rawValue)
                        AND (r.started_at = '-infinity' OR r.full_started_at IS NULL
                            OR r.full_started_at = '-infinity' OR r.settled_run < r.run))
                """
        }
        return """
            SELECT EXISTS (SELECT FROM backend.defect_tracker t LEFT JOIN defect.run r
                    ON r.environment_id = t.environment_id AND r.scope = 'comparison'
                WHERE t.environment_id = \(environment.rawValue) AND t.secret IS NOT NULL
                    AND (r.run IS NULL OR r.asked_for OR r.finished_run < r.run))
                OR EXISTS (SELECT FROM defect.own_run r JOIN backend.defect_tracker t USING (environment_id)
                    WHERE r.environment_id = \(environment.rawValue) AND r.scope = 'comparison'
                        AND t.secret IS NULL AND r.realm_id IN (\(realms(keys)))
                        AND (r.asked_for OR r.finished_run < r.run))
            """
    }

    /// The ids of the keys' realms.
    private func realms(_ keys: [String]) -> Statement {
        let paths = Set(keys.compactMap { EventSubject($0)?.realm.description }).sorted()
        return "SELECT id FROM realm.realm WHERE environment_id = \(environment.rawValue) AND path = ANY (\(paths))"
    }
}

import Postgres

/// Checks that PostgreSQL is usable and configured correctly.
struct DatabaseCheck: DoctorCheck {
    let options: DatabaseOptions
    let connectionsNeeded: Int?

    func findings() async -> [DoctorFinding] {
        do {
            var connection = try options.connect(check: nil)
            let facts = try DatabaseFacts.load(on: &connection)
            return DatabaseRules.findings(facts, connectionsNeeded: connectionsNeeded)
        } catch {
            return [
                .failure(
                    "PostgreSQL: reachable", "\(error)",
                    do: "check that the server runs, and check FIELDPOST_DATABASE_URL or --database: "
                        + "psql \"$FIELDPOST_DATABASE_URL\"")
            ]
        }
    }
}

import Postgres

/// Whether PostgreSQL can be used, and is as it should be.
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
                    do: "see that the server runs and FIELDPOST_DATABASE_URL or --database says where: "
                        + "psql \"$FIELDPOST_DATABASE_URL\"")
            ]
        }
    }
}

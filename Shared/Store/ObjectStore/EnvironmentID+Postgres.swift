package import Model
import Postgres

/// Environments are numbered by PostgreSQL, with an `int`.
extension EnvironmentID: PostgresValue {}

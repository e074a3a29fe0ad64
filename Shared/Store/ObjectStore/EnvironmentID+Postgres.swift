package import Model
import Postgres

/// PostgreSQL numbers environments with an `int`.
extension EnvironmentID: PostgresValue {}

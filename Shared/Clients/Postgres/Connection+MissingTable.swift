extension Connection {
    /// Runs one statement as a separate transaction.
    ///
    /// - Returns: `nil` if one of its tables does not exist yet, because a later schema file creates it.
    package mutating func runIfTableExists(_ statement: Statement) throws(PostgresError) -> Rows? {
        do throws(PostgresError) {
            return try run(statement)
        } catch {
            guard error.isMissingTable else { throw error }
            return nil
        }
    }
}

extension Connection {
    /// Runs one statement as a transaction of its own.
    ///
    /// - Returns: `nil` when a table of it is not there: a later schema file makes it.
    package mutating func runWhereThere(_ statement: Statement) throws(PostgresError) -> Rows? {
        do throws(PostgresError) {
            return try run(statement)
        } catch {
            guard error.isOfMissingTable else { throw error }
            return nil
        }
    }
}

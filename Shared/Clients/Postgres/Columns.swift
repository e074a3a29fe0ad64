/// The columns of one row, read in the order of the `SELECT` as the requested types. Readers can be composed: one can
/// pass the columns to another.
package struct Columns {
    @usableFromInline let row: Row
    @usableFromInline var readCount = 0

    @inlinable
    init(_ row: Row) { self.row = row }

    /// - Throws: `PostgresError` 42804 if there is no further column, it has another type, or it is null and `Value` is
    ///   not optional.
    @inlinable
    package mutating func next<Value: PostgresDecodable>(_ type: Value.Type = Value.self) throws(PostgresError)
        -> Value
    {
        guard readCount < row.rows.columnCount else { throw wrongCount() }
        defer {
            readCount += 1
            extendLifetime(row.rows)
        }
        guard let bytes = unsafe row.rows.bytes(row: row.index, column: readCount) else {
            guard let null = Value.null else { throw row.mismatch(readCount, type, "null") }
            return null
        }
        guard let value = Value.decode(unsafe bytes.bytes) else { throw row.mismatch(readCount, type, "another type") }
        return value
    }

    /// Reads the next column, or returns `nil` if it is null. Equivalent to `next` with an optional type, at half the
    /// cost.
    ///
    /// - Throws: See ``next(_:)``.
    @inlinable @inline(__always)
    package mutating func optional<Value: PostgresValue>(_ type: Value.Type = Value.self) throws(PostgresError)
        -> Value?
    {
        guard readCount < row.rows.columnCount else { throw wrongCount() }
        defer { readCount += 1 }
        return try row.optional(readCount, as: type)
    }

    /// - Throws: `PostgresError` 42804 if there are unread columns.
    @inlinable
    package func end() throws(PostgresError) {
        guard readCount == row.rows.columnCount else { throw wrongCount() }
    }

    @usableFromInline
    func wrongCount() -> PostgresError {
        let (count, isLess) = (row.rows.columnCount, readCount < row.rows.columnCount)
        return PostgresError(
            sqlState: "42804",
            message: "the row has \(count) columns, but its reader reads \(isLess ? "fewer" : "more")")
    }
}

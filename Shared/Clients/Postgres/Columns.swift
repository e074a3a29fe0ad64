/// The columns of one row, read one after the other, each as the type that is asked for or expected: a value of many
/// fields is made in the order of the `SELECT`, and a reader of some columns can be lent to readers of more.
package struct Columns {
    @usableFromInline let row: Row
    @usableFromInline var readCount = 0

    @inlinable
    init(_ row: Row) { self.row = row }

    /// - Throws: `PostgresError` 42804 when there is no further column, or it is of another type, or null where `Value`
    ///   is not optional.
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

    /// The next column, or `nil` when it is null: as `next` of an optional type, at half of the cost where very many
    /// rows are read.
    ///
    /// - Throws: As ``next(_:)``.
    @inlinable @inline(__always)
    package mutating func optional<Value: PostgresValue>(_ type: Value.Type = Value.self) throws(PostgresError)
        -> Value?
    {
        guard readCount < row.rows.columnCount else { throw wrongCount() }
        defer { readCount += 1 }
        return try row.optional(readCount, as: type)
    }

    /// - Throws: `PostgresError` 42804 when columns are left.
    @inlinable
    package func end() throws(PostgresError) {
        guard readCount == row.rows.columnCount else { throw wrongCount() }
    }

    @usableFromInline
    func wrongCount() -> PostgresError {
        let (count, isLess) = (row.rows.columnCount, readCount < row.rows.columnCount)
        return PostgresError(
            sqlState: "42804",
            message: "the row has \(count) columns, and its reader reads \(isLess ? "fewer" : "more")")
    }
}

import CPostgres

/// The rows returned by a statement. Values are decoded from libpq's memory without copying.
@safe package final class Rows {
    private let result: OpaquePointer
    /// The number of rows.
    package let count: Int
    @usableFromInline let columnCount: Int
    /// The number of rows inserted, updated, deleted or selected, from the command tag.
    package let affectedCount: Int

    init(taking result: OpaquePointer) {
        unsafe self.result = result
        count = Int(unsafe PQntuples(result))
        columnCount = Int(unsafe PQnfields(result))
        affectedCount = unsafe Int(String(cString: PQcmdTuples(result))) ?? 0
    }

    deinit { unsafe PQclear(result) }

    /// - Precondition: `row` is below `count`.
    package subscript(_ row: Int) -> Row {
        precondition(row < count)
        return Row(rows: self, index: row)
    }

    /// The first row; `nil` if there is none.
    package var first: Row? { count == 0 ? nil : self[0] }

    /// Decodes all rows as ``Row/decode(_:)`` does.
    package func decode<each Value: PostgresDecodable>(
        _ types: repeat (each Value).Type
    ) throws(PostgresError) -> [(repeat each Value)] {
        var values: [(repeat each Value)] = []
        values.reserveCapacity(count)
        for row in self { values.append(try row.decode(repeat each types)) }
        return values
    }

    /// Decodes the only column of all rows.
    package func decode<Value: PostgresDecodable>(_ type: Value.Type) throws(PostgresError) -> [Value] {
        var values: [Value] = []
        values.reserveCapacity(count)
        for row in self { values.append(try row.decode(type)) }
        return values
    }

    /// Returns the value's bytes, or `nil` for null; valid during the lifetime of the result.
    @usableFromInline
    func bytes(row: Int, column: Int) -> UnsafeRawBufferPointer? {
        if unsafe PQgetisnull(result, Int32(row), Int32(column)) != 0 { return nil }
        let length = Int(unsafe PQgetlength(result, Int32(row), Int32(column)))
        return unsafe UnsafeRawBufferPointer(
            start: PQgetvalue(result, Int32(row), Int32(column)), count: length)
    }

    func name(of column: Int) -> String {
        guard let name = unsafe PQfname(result, Int32(column)) else { return "column \(column)" }
        return unsafe String(cString: name)
    }
}

extension Rows: Sequence {
    package func makeIterator() -> Iterator { Iterator(rows: self) }

    package struct Iterator: IteratorProtocol {
        let rows: Rows
        private var index = 0

        init(rows: Rows) { self.rows = rows }

        package mutating func next() -> Row? {
            guard index < rows.count else { return nil }
            defer { index += 1 }
            return Row(rows: rows, index: index)
        }
    }
}

/// One row of a result.
///
/// A row is decoded by its columns' types, with ``decode(_:)`` or, if there are many, with ``columns``: a mismatch
/// between a statement and its reader is detected immediately. Access by column number is for loops over very many
/// rows.
package struct Row {
    @usableFromInline let rows: Rows
    @usableFromInline let index: Int

    /// Decodes all columns: `let (id, name) = try row.decode(UUID.self, String?.self)`.
    ///
    /// - Throws: `PostgresError` 42804 if the number of columns differs from the number of types, or a column has
    ///   another type or is null where the type is not optional: an error in the program's SQL.
    @inlinable
    package func decode<each Value: PostgresDecodable>(
        _ types: repeat (each Value).Type
    ) throws(PostgresError) -> (repeat each Value) {
        var columns = columns
        let values = (repeat try columns.next(each types))
        try columns.end()
        return values
    }

    /// Decodes the only column. The variadic overload would return a one-element tuple, which the compiler can assign
    /// but not compare or pass on.
    ///
    /// - Throws: See the variadic ``decode(_:)``.
    @inlinable
    package func decode<Value: PostgresDecodable>(_ type: Value.Type) throws(PostgresError) -> Value {
        var columns = columns
        let value = try columns.next(type)
        try columns.end()
        return value
    }

    /// The columns, for sequential reading.
    @inlinable
    package var columns: Columns { Columns(self) }

    /// - Throws: `PostgresError` 42804 if the column is null or has another type: an error in the program's SQL.
    @inlinable @inline(__always)
    package func value<Value: PostgresValue>(_ column: Int, as type: Value.Type = Value.self) throws(PostgresError)
        -> Value
    {
        guard let value: Value = try optional(column) else { throw mismatch(column, type, "null") }
        return value
    }

    /// - Returns: `nil` if the column is null.
    @inlinable @inline(__always)
    package func optional<Value: PostgresValue>(_ column: Int, as type: Value.Type = Value.self) throws(PostgresError)
        -> Value?
    {
        defer { extendLifetime(rows) }
        guard let bytes = unsafe rows.bytes(row: index, column: column) else { return nil }
        guard let value = Value.decode(unsafe bytes.bytes) else { throw mismatch(column, type, "another type") }
        return value
    }

    /// Lends the bytes of a text column to `body`; `nil` if the column is null.
    package func withBytes<Success>(_ column: Int, _ body: (UnsafeRawBufferPointer?) throws -> Success) rethrows
        -> Success
    {
        defer { extendLifetime(rows) }
        return try unsafe body(rows.bytes(row: index, column: column))
    }

    @usableFromInline
    func mismatch(_ column: Int, _ type: Any.Type, _ actual: String) -> PostgresError {
        PostgresError(sqlState: "42804", message: "\(rows.name(of: column)): expected \(type), found \(actual)")
    }
}

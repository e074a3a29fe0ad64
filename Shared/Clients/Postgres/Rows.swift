import CPostgres

/// The rows one statement answered. Values are read where libpq received them.
@safe package final class Rows {
    private let result: OpaquePointer
    /// How many rows there are.
    package let count: Int
    @usableFromInline let columnCount: Int
    /// Rows inserted, updated, deleted or selected, as the command tag says.
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

    /// `nil` when there is none.
    package var first: Row? { count == 0 ? nil : self[0] }

    /// Reads every row as ``Row/decode(_:)`` does.
    package func decode<each Value: PostgresDecodable>(
        _ types: repeat (each Value).Type
    ) throws(PostgresError) -> [(repeat each Value)] {
        var values: [(repeat each Value)] = []
        values.reserveCapacity(count)
        for row in self { values.append(try row.decode(repeat each types)) }
        return values
    }

    /// Reads the one column of every row.
    package func decode<Value: PostgresDecodable>(_ type: Value.Type) throws(PostgresError) -> [Value] {
        var values: [Value] = []
        values.reserveCapacity(count)
        for row in self { values.append(try row.decode(type)) }
        return values
    }

    /// The value's bytes, or `nil` for null; they lie in the result, and are good as long as it is there.
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

/// One row of an answer.
///
/// A row is read by its columns' types, with ``decode(_:)`` or, where it has many, with ``columns``: a statement and
/// its reader that have different columns fail at once. Single values by number are for loops over very many rows.
package struct Row {
    @usableFromInline let rows: Rows
    @usableFromInline let index: Int

    /// Reads all columns: `let (id, name) = try row.decode(UUID.self, String?.self)`.
    ///
    /// - Throws: `PostgresError` 42804 when there are more or fewer columns than types, or one is of another type or
    ///   null where the type is not optional: a mistake in the program's SQL.
    @inlinable
    package func decode<each Value: PostgresDecodable>(
        _ types: repeat (each Value).Type
    ) throws(PostgresError) -> (repeat each Value) {
        var columns = columns
        let values = (repeat try columns.next(each types))
        try columns.end()
        return values
    }

    /// Reads the one column there is. Without it the value would be a tuple of one for the compiler, which can be
    /// assigned but not compared or passed on.
    ///
    /// - Throws: As ``decode(_:)`` of several.
    @inlinable
    package func decode<Value: PostgresDecodable>(_ type: Value.Type) throws(PostgresError) -> Value {
        var columns = columns
        let value = try columns.next(type)
        try columns.end()
        return value
    }

    /// The columns, to be read one after the other.
    @inlinable
    package var columns: Columns { Columns(self) }

    /// - Throws: `PostgresError` 42804 when the column is null or of another type: a mistake in the program's SQL.
    @inlinable @inline(__always)
    package func value<Value: PostgresValue>(_ column: Int, as type: Value.Type = Value.self) throws(PostgresError)
        -> Value
    {
        guard let value: Value = try optional(column) else { throw mismatch(column, type, "null") }
        return value
    }

    /// - Returns: `nil` when the column is null.
    @inlinable @inline(__always)
    package func optional<Value: PostgresValue>(_ column: Int, as type: Value.Type = Value.self) throws(PostgresError)
        -> Value?
    {
        defer { extendLifetime(rows) }
        guard let bytes = unsafe rows.bytes(row: index, column: column) else { return nil }
        guard let value = Value.decode(unsafe bytes.bytes) else { throw mismatch(column, type, "another type") }
        return value
    }

    /// The bytes of a text column, lent to `body`; `nil` when the column is null.
    package func withBytes<Success>(_ column: Int, _ body: (UnsafeRawBufferPointer?) throws -> Success) rethrows
        -> Success
    {
        defer { extendLifetime(rows) }
        return try unsafe body(rows.bytes(row: index, column: column))
    }

    @usableFromInline
    func mismatch(_ column: Int, _ type: Any.Type, _ found: String) -> PostgresError {
        PostgresError(sqlState: "42804", message: "\(rows.name(of: column)): expected \(type), found \(found)")
    }
}

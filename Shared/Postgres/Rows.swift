import CPostgres

/// The rows one statement answered. Values are read where libpq received them.
@safe package final class Rows {
    private let result: OpaquePointer
    /// How many rows there are.
    package let count: Int
    /// Rows inserted, updated, deleted or selected, as the command tag says.
    package let affectedCount: Int

    init(taking result: OpaquePointer) {
        unsafe self.result = result
        count = Int(unsafe PQntuples(result))
        affectedCount = unsafe Int(String(cString: PQcmdTuples(result))) ?? 0
    }

    deinit { unsafe PQclear(result) }

    /// - Precondition: `row` is below `count`.
    package subscript(_ row: Int) -> Row {
        precondition(row < count)
        return Row(rows: self, index: row)
    }

    /// The value's bytes, or `nil` for null, lent to `body`.
    @inline(__always)
    func withBytes<Success>(row: Int, column: Int, _ body: (UnsafeRawBufferPointer?) throws -> Success) rethrows
        -> Success
    {
        if unsafe PQgetisnull(result, Int32(row), Int32(column)) != 0 { return try body(nil) }
        let length = Int(unsafe PQgetlength(result, Int32(row), Int32(column)))
        let pointer = unsafe PQgetvalue(result, Int32(row), Int32(column))
        return try unsafe body(UnsafeRawBufferPointer(start: pointer, count: length))
    }

    func name(of column: Int) -> String {
        guard let name = unsafe PQfname(result, Int32(column)) else { return "column \(column)" }
        return unsafe String(cString: name)
    }
}

extension Rows: Sequence {
    package func makeIterator() -> AnyIterator<Row> {
        var next = 0
        return AnyIterator { [self] in
            guard next < count else { return nil }
            defer { next += 1 }
            return Row(rows: self, index: next)
        }
    }
}

/// One row of an answer.
package struct Row {
    let rows: Rows
    let index: Int

    /// - Throws: `PostgresError` 42804 when the column is null or of another type: a mistake in the program's SQL.
    package func value<Value: PostgresValue>(_ column: Int, as type: Value.Type = Value.self) throws(PostgresError)
        -> Value
    {
        guard let value: Value = try optional(column) else { throw mismatch(column, type, "null") }
        return value
    }

    /// - Returns: `nil` when the column is null.
    package func optional<Value: PostgresValue>(_ column: Int, as type: Value.Type = Value.self) throws(PostgresError)
        -> Value?
    {
        var isNull = false
        let value: Value? = unsafe rows.withBytes(row: index, column: column) { bytes in
            guard let bytes = unsafe bytes else {
                isNull = true
                return nil
            }
            return Value.decode(unsafe bytes.bytes)
        }
        if value == nil, !isNull { throw mismatch(column, type, "another type") }
        return value
    }

    /// The text of a `jsonb` column without its version byte, or the bytes of any other column, lent to `body`.
    package func withJSON<Success>(_ column: Int, _ body: (UnsafeRawBufferPointer?) throws -> Success) rethrows
        -> Success
    {
        try unsafe rows.withBytes(row: index, column: column) { bytes in
            guard let bytes = unsafe bytes, bytes.count >= 1 else { return try body(nil) }
            return try unsafe body(UnsafeRawBufferPointer(rebasing: bytes[1...]))
        }
    }

    private func mismatch(_ column: Int, _ type: Any.Type, _ found: String) -> PostgresError {
        PostgresError(sqlState: "42804", message: "\(rows.name(of: column)): expected \(type), found \(found)")
    }
}

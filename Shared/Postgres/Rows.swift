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
package struct Row {
    @usableFromInline let rows: Rows
    @usableFromInline let index: Int

    /// - Throws: `PostgresError` 42804 when the column is null or of another type: a mistake in the program's SQL.
    @inlinable
    package func value<Value: PostgresValue>(_ column: Int, as type: Value.Type = Value.self) throws(PostgresError)
        -> Value
    {
        guard let value: Value = try optional(column) else { throw mismatch(column, type, "null") }
        return value
    }

    /// - Returns: `nil` when the column is null.
    @inlinable
    package func optional<Value: PostgresValue>(_ column: Int, as type: Value.Type = Value.self) throws(PostgresError)
        -> Value?
    {
        defer { extendLifetime(rows) }
        guard let bytes = unsafe rows.bytes(row: index, column: column) else { return nil }
        guard let value = Value.decode(unsafe bytes.bytes) else { throw mismatch(column, type, "another type") }
        return value
    }

    /// The text of a `jsonb` column without its version byte, lent to `body`; `nil` when the column is null.
    package func withJSON<Success>(_ column: Int, _ body: (UnsafeRawBufferPointer?) throws -> Success) rethrows
        -> Success
    {
        defer { extendLifetime(rows) }
        guard let bytes = unsafe rows.bytes(row: index, column: column), bytes.count >= 1 else {
            return try body(nil)
        }
        return try unsafe body(UnsafeRawBufferPointer(rebasing: bytes[1...]))
    }

    /// Whether a text column is that text, compared without making a `String`.
    package func matches(_ column: Int, _ text: [UInt8]) -> Bool {
        defer { extendLifetime(rows) }
        guard let bytes = unsafe rows.bytes(row: index, column: column) else { return false }
        return unsafe text.withUnsafeBytes { unsafe $0.elementsEqual(bytes) }
    }

    @usableFromInline
    func mismatch(_ column: Int, _ type: Any.Type, _ found: String) -> PostgresError {
        PostgresError(sqlState: "42804", message: "\(rows.name(of: column)): expected \(type), found \(found)")
    }
}

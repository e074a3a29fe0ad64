import Essentials
import FoundationEssentials
import Postgres
import TestSupport
import Testing

@Suite(.ownThreads) struct DecodeTests {
    private enum Size: String, PostgresValue { case small, large }

    @Test func rowDecodesByTypes() throws {
        try withTestDatabase { connection, _ in
            let id = UUID()
            let rows = try connection.run(
                "SELECT \(id), \(Int32(7)), \(String?.none), \(String?.some("a")), ARRAY['b', 'c'], 'large'::text")
            let (first, number, none, some, texts, size) = try rows[0].decode(
                UUID.self, Int32.self, String?.self, String?.self, [String].self, Size.self)
            #expect(first == id && number == 7 && none == nil && some == "a" && texts == ["b", "c"] && size == .large)

            let numbers = try connection.run("SELECT g, g::text FROM generate_series(1, 3) AS g")
            #expect(try numbers.decode(Int32.self, String.self).map(\.1) == ["1", "2", "3"])
            let sent: Size = try connection.run("SELECT \(Size.small)")[0].decode(Size.self)
            #expect(sent == .small)
            #expect(try connection.run("SELECT 1 WHERE false").first == nil)
        }
    }

    @Test func singleColumnDecodesAsValue() throws {
        try withTestDatabase { connection, _ in
            let rows = try connection.run("SELECT g FROM generate_series(1, 3) AS g")
            #expect(Set(try rows.decode(Int32.self)) == [1, 2, 3])
            #expect(Int(try rows[2].decode(Int32.self)) == 3)
            #expect(try connection.run("SELECT NULL::int")[0].decode(Int32?.self) == nil)
            #expect(throws: PostgresError.self) { try connection.run("SELECT 1, 2").decode(Int32.self) }
        }
    }

    @Test func timestampsRoundTripToTheMillisecond() throws {
        try withTestDatabase { connection, _ in
            let time = try #require(Timestamp("2015-03-30T12:00:00.123Z"))
            let before = Timestamp(millisecondsSinceEpoch: -1)
            let (sent, text, finer, missing) = try connection.run(
                """
                SELECT \(time), to_char(\(time) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
                    timestamptz '2015-03-30T12:00:00.123999Z', \(Timestamp?.none)
                """)[0].decode(Timestamp.self, String.self, Timestamp.self, Timestamp?.self)
            #expect(sent == time && text == time.description && finer == time && missing == nil)
            #expect(try connection.run("SELECT \([time, before])")[0].decode([Timestamp].self) == [time, before])
        }
    }

    /// A mismatch between a statement and its reader is detected at the first row.
    @Test func columnMismatchIsNamedInError() throws {
        try withTestDatabase { connection, _ in
            let rows = try connection.run("SELECT \(Int32(7)) AS number, \(String?.none) AS name, 'tiny'::text AS size")
            func message(_ read: (Row) throws -> Void) -> String? {
                let error = #expect(throws: PostgresError.self) { try read(rows[0]) }
                #expect(error?.sqlState == "42804")
                return error?.message
            }
            #expect(
                message { _ = try $0.decode(Int32.self, String?.self) }
                    == "the row has 3 columns, but its reader reads fewer")
            #expect(
                message { _ = try $0.decode(Int32.self, String?.self, String.self, String.self) }
                    == "the row has 3 columns, but its reader reads more")
            #expect(
                message { _ = try $0.decode(Int64.self, String?.self, String.self) }
                    == "number: expected Int64, found another type")
            #expect(
                message { _ = try $0.decode(Int32.self, String.self, String.self) }
                    == "name: expected String, found null")
            #expect(
                message { _ = try $0.decode(Int32.self, String?.self, Size.self) }
                    == "size: expected Size, found another type")
        }
    }

    @Test func columnReadersCompose() throws {
        struct Name {
            let first: String
            let last: String?
            init(_ columns: inout Columns) throws(PostgresError) {
                first = try columns.next()
                last = try columns.next()
            }
        }
        try withTestDatabase { connection, _ in
            let rows = try connection.run("SELECT 1, 'Ana', NULL::text, true")
            var columns = rows[0].columns
            let id = try columns.next(Int32.self)
            let name = try Name(&columns)
            #expect(throws: PostgresError.self) { try columns.end() }
            let exists = try columns.next(Bool.self)
            try columns.end()
            #expect(id == 1 && name.first == "Ana" && name.last == nil && exists)
        }
    }
}

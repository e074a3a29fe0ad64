import Foundation

/// Reads the rows of a file with values separated by commas (RFC 4180), semicolons or tabs. The first row has the
/// column names. Lines end with LF or CRLF.
struct CSVReader: ~Copyable {
    /// A row with values by column name; the value of a missing column is empty.
    struct Row {
        /// The number of its first line.
        let line: Int
        /// `nil` if the row is malformed, or its number of values is not that of the columns.
        let values: [String]?
        fileprivate let columns: [String: Int]

        subscript(name: String) -> String {
            guard let values, let column = columns[name] else { return "" }
            return values[column]
        }
    }

    private var lines: LineReader
    private var columns: [String: Int] = [:]
    private var separator = separators[0]

    /// Separators. Spreadsheets write semicolons if the comma is the decimal sign.
    private static let separators = [UInt8(ascii: ","), UInt8(ascii: ";"), UInt8(ascii: "\t")]

    /// Maximum number of lines of a quoted value.
    private static let lineCountMax = 100

    var bytesRead: Int { lines.bytesRead }

    private init(_ lines: consuming LineReader) { self.lines = lines }

    /// Reads the first row.
    ///
    /// - Parameter needed: The required columns.
    /// - Throws: `CommandFailure` if one of them is missing.
    static func begin(_ lines: consuming LineReader, needed: [String], name: String) throws -> CSVReader {
        var reader = CSVReader(lines)
        let first = try reader.rowBytes()?.bytes ?? []
        for separator in Self.separators {
            let header = Self.values(first, separator) ?? []
            reader.columns = Dictionary(header.enumerated().map { ($1, $0) }) { first, _ in first }
            reader.separator = separator
            if needed.allSatisfy({ reader.columns[$0] != nil }) { return reader }
        }
        reader.columns = Dictionary((Self.values(first) ?? []).enumerated().map { ($1, $0) }) { first, _ in first }
        if let missing = needed.first(where: { reader.columns[$0] == nil }) {
            throw CommandFailure(
                "\(name): the first row has no column '\(missing)'; separate columns by commas, semicolons or tabs")
        }
        return reader
    }

    /// Returns the next row, skipping empty lines; `nil` at the end.
    mutating func next() throws -> Row? {
        guard let (line, bytes) = try rowBytes() else { return nil }
        let values = bytes.flatMap { Self.values($0, separator) }
        return Row(line: line, values: values.flatMap { $0.count == columns.count ? $0 : nil }, columns: columns)
    }

    /// Returns the bytes of the next row and the number of its first line; without bytes if a line is too long.
    private mutating func rowBytes() throws -> (line: Int, bytes: [UInt8]?)? {
        while let first = try lines.next() {
            guard var bytes = first.bytes else { return (first.number, nil) }
            var count = 1
            while !bytes.count(where: { $0 == Self.quote }).isMultiple(of: 2), count < Self.lineCountMax,
                bytes.count <= LineReader.bytesMax, let more = try lines.next()
            {
                bytes.append(UInt8(ascii: "\n"))
                bytes.append(contentsOf: more.bytes ?? [])
                count += 1
            }
            if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
            if !bytes.isEmpty { return (first.number, bytes) }
        }
        return nil
    }

    private static let quote = UInt8(ascii: "\"")

    /// Returns the values of a row; `nil` if its quotes are unbalanced.
    static func values(_ row: [UInt8], _ separator: UInt8 = separators[0]) -> [String]? {
        var (values, value): ([String], [UInt8]) = ([], [])
        var index = 0
        while true {
            if index < row.count, row[index] == quote, value.isEmpty {
                guard let end = quoted(row, from: index + 1, into: &value) else { return nil }
                index = end
                guard index == row.count || row[index] == separator else { return nil }
            }
            guard index < row.count, row[index] != separator else {
                guard let text = String(validating: value, as: UTF8.self) else { return nil }
                values.append(text)
                value = []
                if index >= row.count { return values }
                index += 1
                continue
            }
            value.append(row[index])
            index += 1
        }
    }

    /// - Returns: The index after the closing quote.
    private static func quoted(_ row: [UInt8], from start: Int, into value: inout [UInt8]) -> Int? {
        var index = start
        while index < row.count {
            if row[index] == quote {
                guard index + 1 < row.count, row[index + 1] == quote else { return index + 1 }
                index += 1
            }
            value.append(row[index])
            index += 1
        }
        return nil
    }
}

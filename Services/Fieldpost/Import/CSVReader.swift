import Foundation

/// The rows of a file of values separated by commas (RFC 4180), whose first row names the columns.
struct CSVReader: ~Copyable {
    /// A row, by the names of the columns; one that is not there is empty.
    struct Row {
        /// The number of the line that it begins in.
        let line: Int
        /// `nil`: it cannot be read, or has not as many values as there are columns.
        let values: [String]?
        fileprivate let columns: [String: Int]

        subscript(name: String) -> String {
            guard let values, let column = columns[name] else { return "" }
            return values[column]
        }
    }

    private var lines: LineReader
    private var columns: [String: Int] = [:]

    /// Lines that a value in quotes goes on over, at most.
    private static let lineCountMax = 100

    var bytesRead: Int { lines.bytesRead }

    private init(_ lines: consuming LineReader) { self.lines = lines }

    /// Reads the first row.
    ///
    /// - Parameter needed: The columns that there must be.
    /// - Throws: `CommandFailure` when one of them is not there.
    static func begin(_ lines: consuming LineReader, needed: [String], name: String) throws -> CSVReader {
        var reader = CSVReader(lines)
        var header = try reader.next()?.values ?? []
        // Some programs begin a file with a byte order mark.
        if header.first?.hasPrefix("\u{FEFF}") == true { header[0].removeFirst() }
        reader.columns = Dictionary(header.enumerated().map { ($1, $0) }) { first, _ in first }
        if let missing = needed.first(where: { reader.columns[$0] == nil }) {
            throw CommandFailure("\(name): the first row names no column '\(missing)'")
        }
        return reader
    }

    /// The next row; `nil` after the last one. Empty lines are passed over.
    mutating func next() throws -> Row? {
        while let first = try lines.next() {
            guard var bytes = first.bytes else { return Row(line: first.number, values: nil, columns: columns) }
            var count = 1
            while !bytes.count(where: { $0 == Self.quote }).isMultiple(of: 2), count < Self.lineCountMax,
                bytes.count <= LineReader.bytesMax, let more = try lines.next()
            {
                bytes.append(UInt8(ascii: "\n"))
                bytes.append(contentsOf: more.bytes ?? [])
                count += 1
            }
            if bytes.last == UInt8(ascii: "\r") { bytes.removeLast() }
            if bytes.isEmpty { continue }
            let values = Self.values(bytes).flatMap { columns.isEmpty || $0.count == columns.count ? $0 : nil }
            return Row(line: first.number, values: values, columns: columns)
        }
        return nil
    }

    private static let quote = UInt8(ascii: "\"")

    /// The values of a row; `nil` when its quotes do not fit.
    static func values(_ row: [UInt8]) -> [String]? {
        var (values, value): ([String], [UInt8]) = ([], [])
        var index = 0
        while true {
            if index < row.count, row[index] == quote, value.isEmpty {
                guard let end = quoted(row, from: index + 1, into: &value) else { return nil }
                index = end
                guard index == row.count || row[index] == UInt8(ascii: ",") else { return nil }
            }
            guard index < row.count, row[index] != UInt8(ascii: ",") else {
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

    /// - Returns: Where it goes on behind the closing quote.
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

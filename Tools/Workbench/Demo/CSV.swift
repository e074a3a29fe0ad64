/// A table of RFC 4180: fields in quotes may hold commas, quotes and line ends; lines end with CRLF or LF.
///
/// If the first line has no comma, semicolons or tabs separate the fields: spreadsheets write semicolons if the comma
/// is the decimal sign. A byte order mark is skipped.
struct CSV: Equatable {
    /// A text that is not such a table.
    struct Problem: Error, Equatable, CustomStringConvertible {
        let reason: String
        /// The record, the header being 1.
        let record: Int
        var description: String { "record \(record): \(reason)" }
    }

    let header: [String]
    /// The records, each with as many fields as the header.
    let rows: [[String]]

    /// Reads a table with a header. An empty last line is no record.
    init(_ bytes: some Sequence<UInt8>) throws(Problem) {
        let bytes = Array(bytes).trimmingPrefix([0xEF, 0xBB, 0xBF])
        let firstLine = bytes.prefix { $0 != UInt8(ascii: "\n") }
        let separator = Self.separators.first { firstLine.contains(UInt8(ascii: $0)) } ?? Self.separators[0]
        var parser = Parser(separator: separator)
        for byte in bytes { try parser.take(byte) }
        let records = try parser.finish()
        guard let header = records.first else { throw Problem(reason: "there is no header", record: 1) }
        for (index, record) in records.enumerated() where record.count != header.count {
            throw Problem(reason: "\(record.count) fields instead of \(header.count)", record: index + 1)
        }
        self.header = header
        rows = Array(records.dropFirst())
    }

    private static let separators: [UnicodeScalar] = [",", ";", "\t"]

    private struct Parser {
        enum State { case fieldStart, plain, quoted, afterQuote, afterReturn }

        let separator: UnicodeScalar
        var state = State.fieldStart
        var field: [UInt8] = []
        var record: [String] = []
        var records: [[String]] = []

        mutating func take(_ byte: UInt8) throws(Problem) {
            switch (state, UnicodeScalar(byte)) {
            case (.quoted, "\""): state = .afterQuote
            case (.quoted, _): field.append(byte)
            case (.fieldStart, "\""): state = .quoted
            case (.afterQuote, "\""):
                field.append(byte)
                state = .quoted
            case (.afterReturn, "\n"), (.fieldStart, "\n"), (.plain, "\n"), (.afterQuote, "\n"): endRecord()
            case (.afterReturn, _): throw problem("a carriage return must be followed by a line feed")
            case (_, separator): endField()
            case (_, "\r"): state = .afterReturn
            case (.afterQuote, _): throw problem("something follows a closing quote")
            case (.plain, "\""): throw problem("a quote in a field without quotes")
            case (.fieldStart, _), (.plain, _):
                field.append(byte)
                state = .plain
            }
        }

        mutating func finish() throws(Problem) -> [[String]] {
            switch state {
            case .quoted: throw problem("a quoted field does not end")
            case .afterReturn: throw problem("a carriage return must be followed by a line feed")
            case .plain, .afterQuote: endRecord()
            case .fieldStart: if !record.isEmpty { endRecord() }
            }
            return records
        }

        private mutating func endField() {
            record.append(String(decoding: field, as: UTF8.self))
            field.removeAll(keepingCapacity: true)
            state = .fieldStart
        }

        private mutating func endRecord() {
            endField()
            records.append(record)
            record.removeAll()
        }

        private func problem(_ reason: String) -> Problem { Problem(reason: reason, record: records.count + 1) }
    }
}

import FoundationEssentials
internal import ObjectStore
internal import Secrets

/// The stream was cut or rejected. The pages before are authentic, and are kept.
package struct MoveStreamFailure: Error {
    /// The reason, with the part, the line and the byte.
    package let reason: String
}

/// Reads a move's stream frame by frame. What it returns is authentic and in its position (``MoveChain``).
struct MoveStreamReader {
    private let next: () throws -> [UInt8]?
    private var chain: MoveChain?
    private var lineCount = 0
    private var byteCount = 0
    /// The position at which the current frame begins.
    private var frameStart = (line: 1, byte: 0)

    /// - Parameter next: Returns the next line with its end; one without an end was cut. `nil`: no line is left.
    init(next: @escaping () throws -> [UInt8]?) { self.next = next }

    /// Reads the first frame.
    ///
    /// - Throws: ``MoveFailure`` if it is of another release, or sealed with another key; ``MoveStreamFailure``.
    mutating func header(_ transfer: SecretBox) throws -> MoveLine.Header {
        guard let line = try line() else { throw cut() }
        let json = Self.fields(of: line)?.json ?? line[...]
        guard let beginning = try? JSONDecoder().decode(Beginning.self, from: Data(json)) else {
            throw rejected("it is not the header of an environment's stream")
        }
        guard beginning.header.format == MoveLine.Header.formatCurrent, beginning.header.schema == Schema.version else {
            throw MoveFailure(
                "the stream is of schema \(beginning.header.schema), format \(beginning.header.format); here is "
                    + "schema \(Schema.version), format \(MoveLine.Header.formatCurrent): both installations must be "
                    + "of the same release")
        }
        guard case .header(let header) = try? JSONDecoder().decode(MoveLine.self, from: Data(json)) else {
            throw rejected("it is not the header of an environment's stream")
        }
        guard (try? transfer.openText(Array(header.check), at: MoveLine.context(header.move, "check"))) == header.name
        else { throw MoveFailure("the transfer key is not the one that the stream was made with") }
        chain = try MoveChain(move: header.move, transfer: transfer)
        _ = try authentic(line)
        return header
    }

    /// Reads the next frame.
    mutating func frame() throws -> (line: MoveLine, rows: [[UInt8]]) {
        frameStart = (lineCount + 1, byteCount)
        guard let line = try line() else { throw cut() }
        return try authentic(line)
    }

    /// Checks that the stream ends after its last frame, with the announced numbers.
    mutating func finish(_ end: MoveLine.End) throws {
        frameStart = (lineCount + 1, byteCount)
        guard try next() == nil else { throw rejected("the stream continues after its end", "after the last part") }
        guard end.parts == chain?.frameCount, end.rows == chain?.rowCount else {
            throw rejected("the numbers of parts and rows are not those of its end", "at its end")
        }
    }

    /// Reads and authenticates the frame that begins with a line.
    private mutating func authentic(_ line: [UInt8]) throws -> (line: MoveLine, rows: [[UInt8]]) {
        guard let fields = Self.fields(of: line),
            let decoded = try? JSONDecoder().decode(MoveLine.self, from: Data(fields.json))
        else { throw rejected("it is not a part of an environment's stream, or was modified") }
        let number = (chain?.frameCount ?? 0) + 1
        guard fields.number == number else {
            throw rejected(
                "part \(fields.number) of a stream is in its position: parts are missing, added or exchanged")
        }
        let rows = try rows(of: decoded)
        guard let code = chain?.append(line[..<fields.code.startIndex].dropLast(), rows), code == Array(fields.code)
        else { throw rejected("it was modified, or belongs to another stream", isCounted: true) }
        return (decoded, rows)
    }

    private mutating func rows(of line: MoveLine) throws -> [[UInt8]] {
        guard case .part(let part) = line else { return [] }
        guard let table = MovedTable.named(part.table), (1...table.pageCountMax).contains(part.count) else {
            throw rejected("it has \(part.count) rows of \(part.table), which is not expected")
        }
        var rows: [[UInt8]] = []
        for _ in 0..<part.count {
            guard let row = try self.line() else { throw cut() }
            rows.append(row)
        }
        return rows
    }

    // MARK: Lines

    /// Reads a line without its end.
    private mutating func line() throws -> [UInt8]? {
        guard var line = try next() else { return nil }
        guard line.last == MoveChain.lineEnd else { throw cut() }
        (lineCount, byteCount) = (lineCount + 1, byteCount + line.count)
        line.removeLast()
        return line
    }

    private static func fields(of line: [UInt8]) -> (json: ArraySlice<UInt8>, number: Int, code: ArraySlice<UInt8>)? {
        guard let last = line.lastIndex(of: MoveChain.separator),
            let first = line[..<last].lastIndex(of: MoveChain.separator),
            let number = Int(String(decoding: line[(first + 1)..<last], as: UTF8.self))
        else { return nil }
        return (line[..<first], number, line[(last + 1)...])
    }

    private func rejected(_ reason: String, _ location: String? = nil, isCounted: Bool = false) -> MoveStreamFailure {
        let number = (chain?.frameCount ?? 0) + (isCounted ? 0 : 1)
        let lines = lineCount > frameStart.line ? "lines \(frameStart.line) to \(lineCount)" : "line \(frameStart.line)"
        return MoveStreamFailure(
            reason:
                "the stream is rejected \(location ?? "at part \(number)") (\(lines), from byte \(frameStart.byte)): "
                + "\(reason)"
        )
    }

    private func cut() -> MoveStreamFailure {
        MoveStreamFailure(
            reason: "the stream was cut after part \(chain?.frameCount ?? 0) (line \(lineCount), byte \(byteCount))")
    }

    /// The fields that headers of all formats have.
    private struct Beginning: Decodable {
        struct Line: Decodable {
            let header: Header
            enum CodingKeys: String, CodingKey { case header = "_0" }
        }
        struct Header: Decodable {
            let format: Int
            let schema: Int32
        }
        let line: Line
        var header: Header { line.header }
        enum CodingKeys: String, CodingKey { case line = "header" }
    }
}

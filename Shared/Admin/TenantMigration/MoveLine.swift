import FoundationEssentials

/// A line of a move's stream that describes the following lines. Rows of a table are lines of JSON.
/// ``MoveChain`` authenticates both.
enum MoveLine: Codable {
    /// The first line.
    struct Header: Codable {
        static let formatCurrent = 5
        let format: Int
        /// The number of the newest schema file, equal at both installations.
        let schema: Int32
        let name: String
        /// The environment's id at the installation where it was created; `nil` in format 1.
        let foundedAs: Int32?
        let move: String
        /// A text that only the transfer key opens.
        let check: Data
        /// The point where the copy resumes; `nil`: the beginning.
        let start: MoveResume?
    }

    /// The header of `count` lines with rows of a table.
    struct Part: Codable {
        let table: String
        let count: Int
        /// The point where a copy resumes if the stream is cut after this part.
        let resume: MoveResume
    }

    /// A secret with its sort and location, as stored (sealed in its row) and sealed with the transfer key.
    struct Secret: Codable {
        let sort: String
        let number: Int64
        let person: Int32
        let stored: Data
        let sealed: Data
    }

    /// The last line.
    struct End: Codable {
        /// The generation at the destination: beyond all generations of the source, including lost ones.
        let generation: Int64
        let position: Int64
        /// Number of parts (frames) of the stream, this one included.
        let parts: Int
        /// Number of rows in them.
        let rows: Int
    }

    case header(Header)
    case part(Part)
    /// The environment is write-blocked from here on, and the rest of the stream is final.
    case held
    case secret(Secret)
    case end(End)

    /// The sealing context of a text of the stream.
    static func context(_ move: String, _ purpose: String) -> String { "move/\(move)/\(purpose)" }

    var json: [UInt8] {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return Array(try encoder.encode(self))
        }
    }
}

/// A resume point of the copy of an active environment: everything below a position and a time is copied, and of
/// earlier rows all up to a key.
package struct MoveResume: Codable, Equatable, Sendable {
    /// Replaces the table's name when the copy is complete.
    static let done = "-"

    /// The counter when the copy began.
    package let position: Int64
    /// The database's clock at that time, in microseconds since 1970.
    package let time: Int64
    /// The table and key of the last copied row; `nil` if the copy is complete.
    package var table: String?
    package var last: String?

    /// The value of `--resume`; equal for equal points.
    package var text: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return ((try? encoder.encode(self)) ?? Data()).base64EncodedString()
    }

    package init?(text: String) {
        guard let data = Data(base64Encoded: text), let point = try? JSONDecoder().decode(Self.self, from: data)
        else { return nil }
        self = point
    }

    init(position: Int64, time: Int64) { (self.position, self.time) = (position, time) }
}

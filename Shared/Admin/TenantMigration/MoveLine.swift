import FoundationEssentials

/// A line of a move's stream that says what follows it. The rows of a table are lines of JSON of their own.
/// ``MoveChain`` authenticates both.
enum MoveLine: Codable {
    /// The first line.
    struct Header: Codable {
        static let formatNow = 4
        let format: Int
        /// The number of the schema's newest file: both installations have the same.
        let schema: Int32
        let name: String
        /// The number that the environment had where it was founded; `nil`: of format 1, which has none.
        let foundedAs: Int32?
        let move: String
        /// A word that only the transfer key opens.
        let check: Data
        /// Where the copy goes on; `nil`: it begins.
        let start: MoveResume?
    }

    /// So many lines follow: rows of a table.
    struct Part: Codable {
        let table: String
        let count: Int
        /// Where a copy goes on when the stream is cut after this part.
        let resume: MoveResume
    }

    /// A secret, by its sort and its place, as it is sealed in its row and sealed with the transfer key.
    struct Secret: Codable {
        let sort: String
        let number: Int64
        let person: Int32
        let stored: Data
        let sealed: Data
    }

    /// The last line.
    struct End: Codable {
        /// The new place's: beyond every one that the old place may have had, in a history that was lost too.
        let generation: Int64
        let position: Int64
        /// Number of parts (frames) of the stream, this one included.
        let parts: Int
        /// Number of rows in them.
        let rows: Int
    }

    case header(Header)
    case part(Part)
    /// From here on the environment is held: what follows is all that is left.
    case held
    case secret(Secret)
    case end(End)

    /// What a word of the stream is sealed for.
    static func place(_ move: String, _ what: String) -> String { "move/\(move)/\(what)" }

    var json: [UInt8] {
        get throws {
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
            return Array(try encoder.encode(self))
        }
    }
}

/// Where the copy of a working environment is: everything below a position and a time is there, and of what was there
/// then, all up to a key.
package struct MoveResume: Codable, Equatable, Sendable {
    /// The counter when the copy began.
    package let position: Int64
    /// The database's clock then, in microseconds since 1970.
    package let time: Int64
    /// The last row that was copied of the table; `nil`: all of the copy is there.
    package var table: String?
    package var last: String?

    /// For a command line; the same for the same place.
    package var text: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return ((try? encoder.encode(self)) ?? Data()).base64EncodedString()
    }

    package init?(text: String) {
        guard let data = Data(base64Encoded: text), let found = try? JSONDecoder().decode(Self.self, from: data)
        else { return nil }
        self = found
    }

    init(position: Int64, time: Int64) { (self.position, self.time) = (position, time) }
}

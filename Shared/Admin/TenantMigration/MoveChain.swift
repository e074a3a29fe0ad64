internal import Crypto
import FoundationEssentials
internal import Secrets

/// The authentication of a move's stream (decision 0072): each frame has a code over itself and over the frame before.
///
/// A frame is a line, and the rows that it announces, a line each. Its line has three fields with a blank between them:
/// a ``MoveLine`` as JSON, the frame's number from 1 on, and the code in base64. The code is HMAC-SHA256 (RFC 2104)
/// of the code before, the line up to the code, and the rows, with a key that is derived from the transfer key for this
/// move. So no frame can be changed, removed, added, moved or taken from another stream by a party without the key.
struct MoveChain {
    private let key: SymmetricKey
    private var code = Data()
    /// Number of frames so far.
    private(set) var frameCount = 0
    /// Number of rows in them.
    private(set) var rowCount = 0

    static let separator = UInt8(ascii: " ")
    static let lineEnd = UInt8(ascii: "\n")

    /// - Parameter move: The move's number, in the header of the stream.
    init(move: String, transfer: SecretBox) throws {
        guard let key = transfer.keys(for: MoveLine.context(move, "stream")).first else {
            throw MoveFailure("there is no transfer key")
        }
        self.key = key
    }

    /// Returns the bytes of the next frame.
    mutating func frame(_ line: MoveLine, rows: [[UInt8]] = []) throws -> [UInt8] {
        var bytes = try line.json + [Self.separator] + Array("\(frameCount + 1)".utf8)
        bytes += [Self.separator] + append(bytes, rows) + [Self.lineEnd]
        for row in rows {
            bytes += row
            bytes.append(Self.lineEnd)
        }
        return bytes
    }

    /// Adds a frame, and returns its code.
    ///
    /// - Parameter head: Its line up to the code.
    mutating func append(_ head: some Sequence<UInt8>, _ rows: [[UInt8]]) -> [UInt8] {
        var hash = HMAC<SHA256>(key: key)
        hash.update(data: code)
        hash.update(data: Array(head))
        for row in rows {
            hash.update(data: [Self.lineEnd])
            hash.update(data: row)
        }
        code = Data(hash.finalize())
        frameCount += 1
        rowCount += rows.count
        return Array(code.base64EncodedString().utf8)
    }
}

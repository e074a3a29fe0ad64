import Foundation

/// Reads text files: UTF-8, with or without a byte order mark.
enum TextFile {
    /// Maximum size of a file that is read completely, unless a command sets another.
    static let bytesMax = 1 << 28
    /// Number of bytes by which the encoding is detected.
    static let startCount = 4

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]

    /// Reads a file, without its byte order mark.
    ///
    /// - Throws: `CommandFailure` if it cannot be read, has too many bytes, or is not UTF-8.
    static func read(_ path: String, bytesMax: Int = Self.bytesMax) throws -> Data {
        let size = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
        guard size ?? 0 <= bytesMax else { throw CommandFailure("\(path) has more than \(bytesMax) bytes") }
        guard let data = try? Data(contentsOf: URL(filePath: path)) else { throw CommandFailure("cannot read \(path)") }
        let markCount = try markCount(Array(data.prefix(startCount)), of: path)
        guard String(validating: data, as: UTF8.self) != nil else {
            throw CommandFailure("\(path) is not UTF-8, but perhaps Windows-1252 or ISO 8859: save it as UTF-8")
        }
        return data.dropFirst(markCount)
    }

    /// Returns the size of the byte order mark at the start of a file of UTF-8.
    ///
    /// - Parameter name: The file's, for the message.
    /// - Throws: `CommandFailure`, which names another encoding. Text of UTF-8 has no zero bytes, and most text of
    ///   UTF-16 has one in its first character.
    static func markCount(_ start: [UInt8], of name: String) throws -> Int {
        let isOther =
            switch (start.first, start.dropFirst().first) {
            case (0xFF, 0xFE), (0xFE, 0xFF), (0, .some), (.some, 0): true
            default: false
            }
        guard isOther else { return start.starts(with: mark) ? mark.count : 0 }
        let zeroCount = start.count(where: { $0 == 0 })
        let isWide = zeroCount == 3 || [[0xFF, 0xFE, 0, 0], [0, 0, 0xFE, 0xFF]].contains(start)
        let other = isWide ? "UTF-32" : "UTF-16"
        let file = name == "-" ? "FILE" : name
        throw CommandFailure(
            "\(name == "-" ? "standard input" : name) is \(other); it must be UTF-8: save it as UTF-8, or convert it "
                + "with: iconv -f \(other) -t UTF-8 \(file)")
    }
}

import Foundation

/// The lines of a file or of standard input, of which little more than one is held at a time.
struct LineReader: ~Copyable {
    /// A line and its number, from 1 on.
    struct Line {
        let number: Int
        /// Without its end; `nil`: it has more than so many bytes as are allowed, and was passed over.
        let bytes: [UInt8]?
        /// Whether it ends with a line feed; `false`: with the file.
        let hasEnd: Bool

        /// Whether it is empty, except for the carriage return of a file with CRLF.
        var isBlank: Bool { bytes?.allSatisfy { $0 == 0x20 || $0 == 0x0D || $0 == 0x09 } ?? false }
    }

    /// The longest line: the largest fields, and as much again for how they are written.
    static let bytesMax = 262_144
    private static let chunkBytesMax = 1 << 20

    private let handle: FileHandle
    private let bytesMax: Int
    /// The file's name, until its encoding is checked.
    private var textName: String?
    private var chunk = [UInt8](repeating: 0, count: chunkBytesMax)
    private var buffer: [UInt8] = []
    private var offset = 0
    private var isAtEnd = false
    private var lineCount = 0
    /// How many bytes are read so far, lines that wait included.
    private(set) var bytesRead = 0

    /// - Parameters:
    ///   - bytesMax: The longest line; a longer one is passed over.
    ///   - text: The name of a file of text: its byte order mark is passed over, and another encoding than UTF-8 is
    ///     refused. `nil`: all bytes are content.
    init(_ handle: FileHandle, bytesMax: Int = Self.bytesMax, text name: String? = nil) {
        (self.handle, self.bytesMax, textName) = (handle, bytesMax, name)
    }

    /// The next line; `nil` after the last one, whose end may be that of the file.
    mutating func next() throws -> Line? {
        if let name = textName {
            textName = nil
            while buffer.count < TextFile.startCount, try fill() {}
            offset = try TextFile.markCount(Array(buffer.prefix(TextFile.startCount)), of: name)
        }
        var isTooLong = false
        var searched = offset
        while true {
            if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) { return line(to: end, isTooLong) }
            if buffer.count - offset > bytesMax {
                isTooLong = true
                offset = buffer.count
            }
            searched = buffer.count - offset
            guard try fill() else { break }
        }
        guard offset < buffer.count || isTooLong else { return nil }
        return line(to: buffer.count, isTooLong)
    }

    private mutating func line(to end: Int, _ isTooLong: Bool) -> Line {
        let bytes = isTooLong || end - offset > bytesMax ? nil : Array(buffer[offset..<end])
        let hasEnd = end < buffer.count
        offset = min(end + 1, buffer.count)
        lineCount += 1
        return Line(number: lineCount, bytes: bytes, hasEnd: hasEnd)
    }

    /// Reads some more, in place of what was used: as much as is there, so that who writes into a pipe slowly is not
    /// waited for. `false` at the end.
    private mutating func fill() throws -> Bool {
        buffer.removeFirst(offset)
        offset = 0
        if isAtEnd { return false }
        var count = -1
        repeat {
            count = unsafe chunk.withUnsafeMutableBytes { bytes in
                unsafe read(handle.fileDescriptor, bytes.baseAddress, bytes.count)
            }
        } while count < 0 && errno == EINTR
        guard count >= 0 else { throw CommandFailure("it cannot be read on, after \(bytesRead) bytes") }
        isAtEnd = count == 0
        bytesRead += count
        buffer.append(contentsOf: chunk[..<count])
        return !isAtEnd
    }
}

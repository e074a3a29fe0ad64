import Foundation

/// Reads a file or standard input line by line, with little more than one line in memory.
struct LineReader: ~Copyable {
    /// A line with its number, from 1 on.
    struct Line {
        let number: Int
        /// The content without the line end; `nil` if the line was longer than `bytesMax`, and skipped.
        let bytes: [UInt8]?
        /// Whether it ends with a line feed; `false` at the end of the file.
        let hasEnd: Bool

        /// Whether it is empty, apart from spaces, tabs and the carriage return of CRLF.
        var isBlank: Bool { bytes?.allSatisfy { $0 == 0x20 || $0 == 0x0D || $0 == 0x09 } ?? false }
    }

    /// Maximum size of a line: twice the largest fields.
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
    /// Number of bytes read so far, including buffered lines.
    private(set) var bytesRead = 0

    /// - Parameters:
    ///   - bytesMax: The maximum size of a line; a longer one is skipped.
    ///   - text: The name of a text file: its byte order mark is skipped, and other encodings than UTF-8 are rejected.
    ///     `nil`: all bytes are content.
    init(_ handle: FileHandle, bytesMax: Int = Self.bytesMax, text name: String? = nil) {
        (self.handle, self.bytesMax, textName) = (handle, bytesMax, name)
    }

    /// Returns the next line, `nil` at the end. The last line may lack a line feed.
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

    /// Refills the buffer with the bytes that are available, without waiting for a slow writer of a pipe. Returns
    /// `false` at the end.
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
        guard count >= 0 else { throw CommandFailure("read error after \(bytesRead) bytes") }
        isAtEnd = count == 0
        bytesRead += count
        buffer.append(contentsOf: chunk[..<count])
        return !isAtEnd
    }
}

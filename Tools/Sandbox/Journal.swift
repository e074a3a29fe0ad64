import FoundationEssentials
import Glibc

/// The journal of an emulator: a line of JSON per acknowledged change, written before the response.
///
/// A line that a crash has truncated was not acknowledged, and is dropped at the next start.
final class Journal<Line: Codable>: Sendable {
    private let descriptor: Int32

    /// Opens the file, or makes it, and gives what it holds.
    init(path: String, replay: (Line) -> Void) throws {
        descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw EmulatorError("\(path) cannot be opened: errno \(errno)") }
        let data = try Data(contentsOf: URL(filePath: path))
        var end = data.startIndex
        while let newline = data[end...].firstIndex(of: UInt8(ascii: "\n")) {
            replay(try JSONDecoder().decode(Line.self, from: data[end..<newline]))
            end = newline + 1
        }
        guard ftruncate(descriptor, end) == 0, lseek(descriptor, 0, Int32(SEEK_END)) >= 0 else {
            throw EmulatorError("\(path) cannot be cut: errno \(errno)")
        }
    }

    deinit { close(descriptor) }

    /// The kernel has the line when this returns, so it survives the end of the process.
    func append(_ line: Line) {
        guard let bytes = try? JSONEncoder().encode(line) else { preconditionFailure("a line is always encodable") }
        append([UInt8](bytes))
    }

    /// Appends a line that is already JSON, as `JSONEncoder` would write it.
    func append(_ json: [UInt8]) {
        var bytes = json
        bytes.append(UInt8(ascii: "\n"))
        let count = unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
        precondition(count == bytes.count, "the journal cannot be written: errno \(errno)")
    }
}

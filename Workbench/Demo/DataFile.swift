import Foundation

/// A file of the demo's data folder, plain or gzipped.
enum DataFile {
    /// What keeps a file from being used, for the person who named the folder.
    struct Problem: Error, Equatable, CustomStringConvertible {
        let description: String
    }

    /// Whether a folder has the file, plain or gzipped.
    static func isThere(_ name: String, in folder: String) -> Bool {
        let file = URL(fileURLWithPath: folder, isDirectory: true).appendingPathComponent(name)
        return [file, file.appendingPathExtension("gz")].contains {
            FileManager.default.isReadableFile(atPath: $0.path)
        }
    }

    /// Reads `name`, or unpacks `name.gz` with the program `gzip` when there is no such file.
    ///
    /// - Throws: ``Problem``, which names the file.
    static func read(_ name: String, in folder: String) throws(Problem) -> Data {
        let file = URL(fileURLWithPath: folder, isDirectory: true).appendingPathComponent(name)
        if let data = try? Data(contentsOf: file) { return data }
        let packed = file.appendingPathExtension("gz")
        guard FileManager.default.isReadableFile(atPath: packed.path) else {
            throw Problem(description: "\(folder) has neither \(name) nor \(name).gz")
        }
        do { return try unpack(packed) } catch {
            throw Problem(description: "\(packed.path) cannot be unpacked: \(error)")
        }
    }

    private static func unpack(_ file: URL) throws -> Data {
        let process = Process()
        let output = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["gzip", "-dc", "--", file.path]
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        try process.run()
        let data = try output.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        guard process.terminationStatus == 0 else {
            throw Problem(description: "gzip ended with status \(process.terminationStatus)")
        }
        return data
    }
}

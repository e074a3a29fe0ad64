package import Foundation

/// A data file, plain or gzipped. Only for tools: it needs the program `gzip`.
package enum DataFile {
    /// The reason why a file cannot be read.
    package struct Problem: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// Whether a folder has the file, plain or gzipped.
    package static func isThere(_ name: String, in folder: String) -> Bool { path(of: name, in: folder) != nil }

    /// Reads `name`, or unpacks `name.gz` with the program `gzip` when there is no such file.
    ///
    /// - Throws: ``Problem``, which names the file.
    package static func read(_ name: String, in folder: String) throws(Problem) -> Data {
        guard let path = path(of: name, in: folder) else {
            throw Problem(description: "\(folder) has neither \(name) nor \(name).gz")
        }
        return try read(path)
    }

    private static func path(of name: String, in folder: String) -> String? {
        ["\(folder)/\(name)", "\(folder)/\(name).gz"].first { FileManager.default.isReadableFile(atPath: $0) }
    }

    /// Reads a file; unpacks it when its name ends in `.gz`.
    ///
    /// - Throws: ``Problem``, which names the file.
    package static func read(_ path: String) throws(Problem) -> Data {
        let file = URL(fileURLWithPath: path)
        guard FileManager.default.isReadableFile(atPath: path) else {
            throw Problem(description: "\(path) cannot be read")
        }
        do {
            return file.pathExtension == "gz" ? try unpack(file) : try Data(contentsOf: file)
        } catch {
            throw Problem(description: "\(path) cannot be read: \(error)")
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

package import Foundation
package import LocalCluster

/// A script of `deploy` that receives what services send, in a folder of its own, which it writes to. It ends with this
/// value.
package final class ReceiverProcess: Sendable {
    package let folder: URL
    package let process: ClusterProcess

    /// - Parameters:
    ///   - script: Its name in `deploy`; `deploy/test` installs what it imports.
    ///   - file: What is in its folder once it listens.
    ///   - files: What is in its folder when it starts.
    package init(_ script: String, untilThereIs file: String, files: [String: String] = [:]) throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let python = root.appending(path: ".build/receivers/bin/python").path
        guard FileManager.default.isExecutableFile(atPath: python) else {
            throw ClusterFailure("there is no \(python); deploy/test installs it")
        }
        folder = FileManager.default.temporaryDirectory.appending(path: "fieldpost-receivers-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        for (name, text) in files {
            try text.write(to: folder.appending(path: name), atomically: true, encoding: .utf8)
        }
        process = try ClusterProcess(
            ClusterProcess.Command(
                executable: python, arguments: [root.appending(path: "deploy/\(script)").path, folder.path],
                environment: ["PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"],
                logPath: folder.appending(path: "log").path))
        while !FileManager.default.fileExists(atPath: folder.appending(path: file).path) {
            guard process.waitForEnd(within: .milliseconds(50)) == nil else {
                throw ClusterFailure("\(script) ended: \(process.logTail())")
            }
        }
    }

    deinit {
        process.kill9()
        try? FileManager.default.removeItem(at: folder)
    }

    package func data(of file: String) throws -> Data { try Data(contentsOf: folder.appending(path: file)) }

    package func write(_ text: String, to file: String) throws {
        try text.write(to: folder.appending(path: file), atomically: true, encoding: .utf8)
    }

    /// The lines of a file that it writes, each a value as JSON.
    package func lines<Line: Decodable>(of file: String, as: Line.Type = Line.self) throws -> [Line] {
        guard let data = FileManager.default.contents(atPath: folder.appending(path: file).path) else { return [] }
        // The last line may be half there.
        let end = data.lastIndex(of: UInt8(ascii: "\n")) ?? data.startIndex
        return try data[..<end].split(separator: UInt8(ascii: "\n"))
            .map { try JSONDecoder().decode(Line.self, from: Data($0)) }
    }
}

import Foundation

/// Runs `openssl s_server` with a self-signed certificate for 127.0.0.1. The server stops with this value.
package final class TLSServer: Sendable {
    package let port: Int
    /// The certificate as a PEM file; a client that trusts it trusts the server.
    package let certificateFile: String
    private let folder: URL
    private let process: Process

    package init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "fieldpost-tls-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let key = folder.appending(path: "key").path
        certificateFile = folder.appending(path: "certificate").path
        let make = try Self.openssl(
            "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=fieldpost -addext subjectAltName=IP:127.0.0.1"
                + " -keyout \(key) -out \(certificateFile)", output: nil)
        make.waitUntilExit()
        let output = Pipe()
        process = try Self.openssl(
            "s_server -accept 127.0.0.1:0 -www -key \(key) -cert \(certificateFile)", output: output)
        // The server prints its address when it listens: `ACCEPT 127.0.0.1:45321`.
        var text = ""
        var found: Int?
        while found == nil, case let data = output.fileHandleForReading.availableData, !data.isEmpty {
            text += String(decoding: data, as: UTF8.self)
            let line = text.split(separator: "\n").dropLast(text.hasSuffix("\n") ? 0 : 1).last {
                $0.hasPrefix("ACCEPT ")
            }
            found = line?.split(separator: ":").last.flatMap { Int($0) }
        }
        guard let found else { throw CocoaError(.executableLoad) }
        port = found
    }

    // The server inherits a blocked signal mask from its parent thread, so only SIGKILL stops it.
    deinit {
        kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
        try? FileManager.default.removeItem(at: folder)
    }

    private static func openssl(_ arguments: String, output: Pipe?) throws -> Process {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments.split(separator: " ").map(String.init)
        process.standardOutput = output ?? FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }
}

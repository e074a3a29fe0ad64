import Foundation
import TestSupport
import Testing

@testable import HTTP

/// Against `openssl s_server`, whose certificate only its own file vouches for.
@Suite(.ownThreads) struct TLSTests {
    @Test func aServerIsTrustedOnlyThroughItsAuthorityAndForItsName() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "fieldpost-tls-\(UUID())")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        let (key, certificate) = (directory.appending(path: "key").path, directory.appending(path: "certificate").path)
        let make = try openssl(
            "req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=fieldpost -addext subjectAltName=IP:127.0.0.1"
                + " -keyout \(key) -out \(certificate)", output: nil)
        make.waitUntilExit()
        try #require(make.terminationStatus == 0)
        let port = LoopbackServer.freePort()
        let output = Pipe()
        let server = try openssl(
            "s_server -accept 127.0.0.1:\(port) -www -key \(key) -cert \(certificate)", output: output)
        // It is a child of a thread that blocks signals, and so ends by none that can be blocked.
        defer {
            kill(server.processIdentifier, SIGKILL)
            server.waitUntilExit()
        }
        // It tells when it listens.
        while let line = String(data: output.fileHandleForReading.availableData, encoding: .utf8), !line.isEmpty {
            if line.contains("ACCEPT") { break }
        }

        var configuration = Client.Configuration()
        let stranger = Client(configuration: configuration)
        let request = Request("POST", "https://127.0.0.1:\(port)/", body: [1])
        let error = await #expect(throws: HTTPError.self) { try await stranger.send(request) }
        #expect(error?.outcome == .notSent)

        configuration.caFile = certificate
        let friend = Client(configuration: configuration)
        #expect(try await friend.send(Request("https://127.0.0.1:\(port)/")).status == 200)
        let otherName = Request("https://localhost:\(port)/")
        #expect(await #expect(throws: HTTPError.self) { try await friend.send(otherName) }?.outcome == .notSent)
    }

    private func openssl(_ arguments: String, output: Pipe?) throws -> Process {
        let process = Process()
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["openssl"] + arguments.split(separator: " ").map(String.init)
        process.standardOutput = output ?? FileHandle.nullDevice
        process.standardError = FileHandle.nullDevice
        try process.run()
        return process
    }
}

import Essentials
import Foundation
import HTTPClient
import Hummingbird
import LocalCluster
import Logging
import TestSupport
import Testing

@testable import HTTPServer
@testable import ServiceSettings

/// A kind of replacement of `tls.crt` and `tls.key` in a folder.
enum Replacement: CaseIterable {
    /// The files are overwritten, first the certificate.
    case inPlace
    /// Each file is renamed over the previous one.
    case byRenaming
    /// A link to the folder of both files is replaced (Kubernetes).
    case byLink

    func perform(_ days: Int, by authority: TestAuthority, in folder: String) throws {
        guard self != .byLink else { return try authority.publish(days: days, in: folder) }
        let new = "\(folder)/new"
        try authority.issue(days: days, in: new)
        for name in ["tls.crt", "tls.key"] {
            if self == .byRenaming {
                try runToEnd("mv", ["\(new)/\(name)", "\(folder)/\(name)"])
            } else {
                try Data(contentsOf: URL(filePath: "\(new)/\(name)")).write(to: URL(filePath: "\(folder)/\(name)"))
            }
        }
    }
}

/// A server's files with a pair of three days.
private struct ServerFiles {
    let authority: TestAuthority
    let folder: String
    var files: HTTPEdge.TLSFiles { .init(certificate: folder + "/tls.crt", key: folder + "/tls.key") }

    init() throws {
        authority = try TestAuthority()
        folder = authority.folder + "/server"
        try authority.issue(days: 3, in: folder)
    }

    func write(_ text: String, to name: String) throws {
        try Data(text.utf8).write(to: URL(filePath: "\(folder)/\(name)"))
    }

    func text(_ name: String) throws -> String { try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8) }
}

@Suite(.ownThreads) struct CertificateRenewalTests {
    @Test(arguments: Replacement.allCases)
    func renewedCertificateIsServedAndStreamsContinue(replacement: Replacement) async throws {
        let server = try ServerFiles()
        if replacement == .byLink {
            try FileManager.default.removeItem(atPath: server.folder)
            try server.authority.publish(days: 3, in: server.folder)
        }
        var edge = HTTPEdge(tls: server.files)
        edge.tls?.pollInterval = .milliseconds(10)
        let (lines, send) = AsyncStream.makeStream(of: String.self)
        let log = LogCapture(level: .info)
        let body = ResponseBody { writer in
            for await line in lines { try await writer.write(.init(string: line + "\n")) }
            try await writer.finish(nil)
        }
        try await EdgeTests().withServer(
            edge, logger: log.logger,
            routes: { $0.get("stream") { _, _ in Hummingbird.Response(status: .ok, body: body) } }
        ) { port in
            // A server stops when its responses have ended.
            defer { send.finish() }
            let client = Client(configuration: trusting(server.authority))
            defer { client.shutDown() }
            let stream = try await client.stream(HTTPClient.Request("https://127.0.0.1:\(port)/stream"))
            var received = stream.body.lines(bytesMax: 100).makeAsyncIterator()
            send.yield("before")
            #expect(try await received.next() == Array("before".utf8))
            let first = try await certificateEnd(port, server.authority)
            try replacement.perform(30, by: server.authority, in: server.folder)
            try await waitUntil { try await certificateEnd(port, server.authority) > first.adding(.seconds(86_400)) }
            send.yield("after")
            send.finish()
            #expect(try await received.next() == Array("after".utf8))
            #expect(try await received.next() == nil)
            // It is logged after its first use.
            func renewed() -> [LogCapture.Event] { log.errorEvents.filter { $0.message == "TLS certificate renewed" } }
            try await waitUntil { !renewed().isEmpty }
            #expect(renewed().map { $0.metadata["certificate"] } == [server.files.certificate])
        }
    }

    @Test func pairStaysUntilTheKeyMatches() throws {
        let server = try ServerFiles()
        let log = LogCapture()
        let certificate = try ServerCertificate(server.files, server: "test", logger: log.logger)
        let (old, start) = (certificate.context, Timestamp.now())
        try server.authority.issue(days: 30, in: server.folder + "/new")
        let key = try server.text("tls.key")
        try server.write(try server.text("new/tls.crt"), to: "tls.crt")
        certificate.poll(now: start)
        certificate.poll(now: start.adding(.seconds(59)))
        #expect(certificate.context === old)
        #expect(log.errors.isEmpty, "a renewal in progress is no error")
        for seconds in [60, 61, 3_659, 3_660] { certificate.poll(now: start.adding(.seconds(seconds))) }
        #expect(certificate.context === old)
        #expect(log.errorEvents.map(\.message) == Array(repeating: "TLS certificate cannot be renewed", count: 2))
        let metadata = try #require(log.errorEvents.first?.metadata)
        #expect(metadata["certificate"] == server.files.certificate && metadata["key"] == server.files.key)
        #expect(metadata["error"]?.isEmpty == false)

        try server.write(try server.text("new/tls.key"), to: "tls.key")
        certificate.poll(now: start.adding(.seconds(3_661)))
        let new = certificate.context
        #expect(new !== old)
        // The next failure is not reported at once.
        try server.write(key, to: "tls.key")
        certificate.poll(now: start.adding(.seconds(9_000)))
        #expect(certificate.context === new)
        #expect(log.errors.count == 2)
    }

    @Test(arguments: ["tls.crt", "tls.key"], ["garbage", "", nil])
    func unusableFileKeepsThePair(name: String, content: String?) throws {
        let server = try ServerFiles()
        let log = LogCapture()
        let certificate = try ServerCertificate(server.files, server: "test", logger: log.logger)
        let old = certificate.context
        let previous = try server.text(name)
        if let content {
            try server.write(content, to: name)
        } else {
            try FileManager.default.removeItem(atPath: "\(server.folder)/\(name)")
        }
        let start = Timestamp.now()
        certificate.poll(now: start)
        certificate.poll(now: start.adding(.seconds(60)))
        #expect(certificate.context === old)
        #expect(log.errors.count == 1, "\(log.errors)")
        #expect(log.errors.allSatisfy { !$0.contains("\n") })
        // A restart with these files fails, and names them.
        let error = #expect(throws: ComponentError.self) {
            try ServerCertificate(server.files, server: "test", logger: log.logger)
        }
        #expect(error?.description.contains(server.files.certificate) == true)
        #expect(error?.description.contains(server.files.key) == true)
        try server.write(previous, to: name)
        certificate.poll(now: start.adding(.seconds(61)))
        certificate.poll(now: start.adding(.seconds(7_200)))
        #expect(log.errors.count == 1)
    }

    @Test func expiredCertificateIsNotUsedAndReported() throws {
        let server = try ServerFiles()
        let log = LogCapture()
        let certificate = try ServerCertificate(server.files, server: "test", logger: log.logger)
        let old = certificate.context
        try server.authority.issue(days: 1, in: server.folder)
        let later = Timestamp.now().adding(.seconds(2 * 86_400))
        certificate.poll(now: later)
        certificate.poll(now: later.adding(.seconds(60)))
        #expect(certificate.context === old)
        #expect(log.errors.count == 1 && log.errors[0].contains("expired at"), "\(log.errors)")
        // The pair in use is reported too.
        try server.authority.issue(days: 3, in: server.folder)
        certificate.poll(now: later.adding(.seconds(61)))
        let renewed = certificate.context
        #expect(renewed !== old)
        certificate.poll(now: later.adding(.seconds(2 * 86_400)))
        certificate.poll(now: later.adding(.seconds(2 * 86_400 + 60)))
        #expect(certificate.context === renewed)
        #expect(log.errors.count == 2)
    }

    @Test func certificateOfTheFutureIsNotUsedAndReported() throws {
        let server = try ServerFiles()
        let log = LogCapture()
        let certificate = try ServerCertificate(server.files, server: "test", logger: log.logger)
        let old = certificate.context
        try server.authority.issue(days: 30, in: server.folder)
        let (now, day) = (Timestamp.now(), Duration.seconds(86_400))
        let earlier = Timestamp(millisecondsSinceEpoch: now.millisecondsSinceEpoch - 86_400_000)
        certificate.poll(now: earlier)
        certificate.poll(now: earlier.adding(.seconds(60)))
        #expect(certificate.context === old)
        #expect(log.errors.count == 1 && log.errors[0].contains("valid from"), "\(log.errors)")
        certificate.poll(now: earlier.adding(day))
        #expect(certificate.context !== old)
    }

    /// Forms that `openssl` and load balancers make.
    @Test func combinedFileAndKeyWithParametersAreAccepted() throws {
        let server = try ServerFiles()
        let parameters = try runToEnd("openssl", ["ecparam", "-name", "prime256v1"])
        let combined = try parameters + server.text("tls.key") + server.text("tls.crt")
        try server.write(combined, to: "combined.pem")
        let path = server.folder + "/combined.pem"
        _ = try ServerCertificate(.init(certificate: path, key: path), server: "test", logger: LogCapture().logger)
    }
}

private func trusting(_ authority: TestAuthority) -> Client.Configuration {
    var configuration = Client.Configuration()
    configuration.caFile = authority.file
    configuration.readsCertificates = true
    return configuration
}

/// The expiry of the certificate that a new connection gets.
private func certificateEnd(_ port: Int, _ authority: TestAuthority) async throws -> Timestamp {
    let client = Client(configuration: trusting(authority))
    defer { client.shutDown() }
    return try #require(try await client.send(HTTPClient.Request("https://127.0.0.1:\(port)/page")).certificateEnd)
}

/// Waits for a condition.
private func waitUntil(_ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + patienceMax
    while try await !condition() {
        try #require(.now < deadline, "timeout")
        try await Task.sleep(for: .milliseconds(5))
    }
}

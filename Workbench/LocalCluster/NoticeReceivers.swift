package import Foundation

/// `deploy/receivers.py`: a mail server, a receiver of webhooks and a push service, with TLS, in a folder of their own.
/// They end with this value.
package final class NoticeReceivers: Sendable {
    /// Where they listen, and a browser's subscription.
    private struct Ports: Decodable {
        let web, starttls, tls, plain: Int
        let p256dh, auth: String
    }

    /// What one of them got, whatever it answered.
    package struct Received: Decodable, Sendable {
        /// `webhook`, `push`, `mail`; `malformed`: its signature, or its encryption, is wrong.
        package let kind: String
        /// The path that was called, or the address that was written to.
        package let path: String
        /// The body, the decrypted message, or the e-mail as it came.
        package let text: String
        /// By names in lower case.
        package let headers: [String: String]
        /// What was answered, unless nothing was.
        package let status: Int
        /// What a push service is told of the sender, as JSON.
        package let claims: String?
        package let isTLS: Bool?
        package let login: String?
    }

    package let folder: URL
    package let process: ClusterProcess
    private let ports: Ports

    /// - Parameter secret: What webhooks are signed with; `nil`: it is told later.
    package init(secret: String? = nil) throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let python = root.appending(path: ".build/receivers/bin/python").path
        guard FileManager.default.isExecutableFile(atPath: python) else {
            throw ClusterFailure("there is no \(python); deploy/test installs it")
        }
        folder = FileManager.default.temporaryDirectory.appending(path: "fieldpost-receivers-\(UUID())")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        if let secret { try secret.write(to: folder.appending(path: "secret"), atomically: true, encoding: .utf8) }
        process = try ClusterProcess(
            ClusterProcess.Command(
                executable: python, arguments: [root.appending(path: "deploy/receivers.py").path, folder.path],
                environment: ["PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1"],
                logPath: folder.appending(path: "log").path))
        let file = folder.appending(path: "ports")
        while !FileManager.default.fileExists(atPath: file.path) {
            guard process.waitForEnd(within: .milliseconds(50)) == nil else {
                throw ClusterFailure("the receivers ended: \(process.logTail())")
            }
        }
        ports = try JSONDecoder().decode(Ports.self, from: Data(contentsOf: file))
    }

    deinit {
        process.kill9()
        try? FileManager.default.removeItem(at: folder)
    }

    /// Says what webhooks are signed with.
    package func set(secret: String) throws {
        try secret.write(to: folder.appending(path: "secret"), atomically: true, encoding: .utf8)
    }

    /// A PEM file: who trusts it trusts all of them.
    package var certificateFile: String { folder.appending(path: "certificate.pem").path }
    package var webURL: String { "https://127.0.0.1:\(ports.web)" }
    /// Asks for STARTTLS, and for the login `fieldpost` with the password `post`.
    package var startTLSServer: String { "smtp://127.0.0.1:\(ports.starttls)" }
    /// Speaks TLS at once.
    package var tlsServer: String { "smtps://127.0.0.1:\(ports.tls)" }
    /// Has no TLS at all.
    package var plainServer: String { "smtp://127.0.0.1:\(ports.plain)" }
    /// Fields of a browser's subscription.
    package var browser: (p256dh: String, auth: String) { (ports.p256dh, ports.auth) }

    /// All that they got, in its order.
    package func received() throws -> [Received] {
        guard let data = FileManager.default.contents(atPath: folder.appending(path: "received").path) else {
            return []
        }
        // The last line may be half there.
        let end = data.lastIndex(of: UInt8(ascii: "\n")) ?? data.startIndex
        return try data[..<end].split(separator: UInt8(ascii: "\n"))
            .map { try JSONDecoder().decode(Received.self, from: Data($0)) }
    }
}

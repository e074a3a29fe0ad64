import Foundation

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

    package let receiver: ReceiverProcess
    private let ports: Ports

    /// - Parameter secret: What webhooks are signed with; `nil`: it is told later.
    package init(secret: String? = nil) throws {
        receiver = try ReceiverProcess(
            "receivers.py", untilThereIs: "ports", files: secret.map { ["secret": $0] } ?? [:])
        ports = try JSONDecoder().decode(Ports.self, from: receiver.data(of: "ports"))
    }

    /// Says what webhooks are signed with.
    package func set(secret: String) throws { try receiver.write(secret, to: "secret") }

    /// A PEM file: who trusts it trusts all of them.
    package var certificateFile: String { receiver.folder.appending(path: "certificate.pem").path }
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
    package func received() throws -> [Received] { try receiver.lines(of: "received") }
}

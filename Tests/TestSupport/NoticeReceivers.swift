import Foundation

/// `deploy/receivers.py`: a mail server, a receiver of webhooks and a push service, with TLS, in a folder of their own.
/// They end with this value.
package final class NoticeReceivers: Sendable {
    /// The receivers' addresses, and a browser's subscription.
    private struct Ports: Decodable {
        let web, starttls, tls, plain: Int
        let p256dh, auth: String
    }

    /// A request to a receiver.
    package struct Received: Decodable, Sendable {
        /// `webhook`, `push`, `mail`; `malformed`: its signature, or its encryption, is wrong.
        package let kind: String
        /// The path that was called, or the address that was written to.
        package let path: String
        /// The body, the decrypted message, or the e-mail as it came.
        package let text: String
        /// By names in lower case.
        package let headers: [String: String]
        /// The response, if any.
        package let status: Int
        /// The claims about the sender that a push service receives, as JSON.
        package let claims: String?
        package let isTLS: Bool?
        package let login: String?
    }

    package let receiver: ReceiverProcess
    private let ports: Ports

    /// - Parameter secret: The signing key of webhooks; `nil`: set later.
    package init(secret: String? = nil) throws {
        receiver = try ReceiverProcess(
            "receivers.py", untilThereIs: "ports", files: secret.map { ["secret": $0] } ?? [:])
        ports = try JSONDecoder().decode(Ports.self, from: receiver.data(of: "ports"))
    }

    /// Sets the signing key of webhooks.
    package func set(secret: String) throws { try receiver.write(secret, to: "secret") }

    /// A PEM file: who trusts it trusts all of them.
    package var certificateFile: String { receiver.folder.appending(path: "certificate.pem").path }
    package var webURL: String { "https://127.0.0.1:\(ports.web)" }
    /// Requires STARTTLS, and the login `fieldpost` with the password `post`.
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

import Foundation

/// `deploy/receivers.py`: a mail server, a receiver of webhooks and push services, with TLS, in a folder of their own.
/// They end with this value.
package final class NoticeReceivers: Sendable {
    /// The receivers' addresses, and a browser's subscription.
    private struct Ports: Decodable {
        let web, starttls, tls, plain, apns, fcm: Int
        let p256dh, auth: String
    }

    /// A request to a receiver.
    package struct Received: Decodable, Sendable {
        /// `webhook`, `push`, `mail`, `apns`, `fcm`; `oauth`: a request for an access token of FCM; `malformed`: its
        /// signature, its encryption or its form is wrong.
        package let kind: String
        /// The path that was called, the address that was written to, or the device's token.
        package let path: String
        /// The body, the decrypted message, or the e-mail as it came.
        package let text: String
        /// By names in lower case.
        package let headers: [String: String]
        /// The response, if any.
        package let status: Int
        /// The claims about the sender that a push service or APNs receives, as JSON.
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

    // MARK: Native push

    package var apnsURL: String { "https://127.0.0.1:\(ports.apns)" }
    package var fcmURL: String { "https://127.0.0.1:\(ports.fcm)" }
    /// The team's key for APNs, with `keyID`, `team` and `topic`.
    package func appleKey() throws -> String { String(decoding: try receiver.data(of: "apns.p8"), as: UTF8.self) }
    package static let (keyID, team, topic) = ("ABC123DEFG", "DEF123GHIJ", "com.example.app")
    /// The service account's key for FCM.
    package func firebaseAccount() throws -> [UInt8] { Array(try receiver.data(of: "account.json")) }

    /// The faults of the next requests to APNs and FCM.
    package struct PushFaults: Encodable, Sendable {
        package struct Fault: Encodable, Sendable {
            var status: Int?
            var reason: String?
            var retryAfter: Int?
            var hold: Bool?
            var drop: Bool?

            /// A request that succeeds.
            package static let none = Fault()
            /// A request that gets no response.
            package static let hold = Fault(hold: true)
            /// A request whose connection is closed instead of a response.
            package static let drop = Fault(drop: true)
            package static func status(_ status: Int, _ reason: String?, retryAfter: Int? = nil) -> Fault {
                Fault(status: status, reason: reason, retryAfter: retryAfter)
            }
        }

        /// By device token, and `oauth`: of the first request, the second, and so on.
        package var tokens: [String: [Fault]] = [:]
        /// Provider tokens of APNs that were issued before have expired; seconds since 1970.
        package var apnsIssuedAfter: Int64?
        /// The number of access tokens of FCM, from the first one, that have expired.
        package var fcmRevokedCount: Int?

        package init(_ tokens: [String: [Fault]] = [:], apnsIssuedAfter: Int64? = nil, fcmRevokedCount: Int? = nil) {
            (self.tokens, self.apnsIssuedAfter, self.fcmRevokedCount) = (tokens, apnsIssuedAfter, fcmRevokedCount)
        }
    }

    package func set(_ faults: PushFaults) throws {
        try receiver.write(String(decoding: try JSONEncoder().encode(faults), as: UTF8.self), to: "faults")
    }

    /// All that they got, in its order.
    package func received() throws -> [Received] { try receiver.lines(of: "received") }
}

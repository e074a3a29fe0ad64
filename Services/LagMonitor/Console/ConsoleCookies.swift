import Essentials
import HTTPTypes
import Identity

/// The cookies of the console. No script reads them.
struct ConsoleCookies: Sendable {
    let isSecure: Bool

    /// Longest time between the beginning of a login and its end, in seconds.
    private static let loginSecondsMax = 600
    private static let bytesMax = 256

    /// Where browsers speak TLS a name with this beginning cannot be set by another host or without TLS.
    private var prefix: String { isSecure ? "__Host-" : "" }
    private var session: String { prefix + "fieldpost-console" }
    private var login: String { prefix + "fieldpost-console-login" }

    /// Pages of other sites do not bring it along, not even by a link.
    func begin(_ id: String, seconds: Int64) -> String {
        attributes("\(session)=\(id)", "Strict", seconds: seconds)
    }

    /// What a login's answer is bound to stays with the browser that began it. The answer comes by a link of the
    /// provider's, which brings it along.
    func begin(_ request: AuthorizationRequest) -> String {
        attributes(
            "\(login)=\(request.state).\(request.nonce).\(request.verifier)", "Lax",
            seconds: Int64(Self.loginSecondsMax))
    }

    var endSession: String { attributes("\(session)=", "Strict", seconds: 0) }
    var endLogin: String { attributes("\(login)=", "Lax", seconds: 0) }

    private func attributes(_ pair: String, _ sameSite: String, seconds: Int64) -> String {
        "\(pair); Path=/; Max-Age=\(seconds); HttpOnly; SameSite=\(sameSite)" + (isSecure ? "; Secure" : "")
    }

    func session(in headers: HTTPFields) -> String? { value(session, in: headers) }

    /// The login that the browser has begun.
    func login(in headers: HTTPFields) -> AuthorizationRequest? {
        let parts = value(login, in: headers)?.split(separator: ".").map(String.init) ?? []
        guard parts.count == 3, parts.allSatisfy({ $0.utf8.count == 43 && $0.utf8.allSatisfy(Base64URL.contains) })
        else { return nil }
        return AuthorizationRequest(state: parts[0], nonce: parts[1], verifier: parts[2])
    }

    /// A cookie that is there once; one that is there twice was planted.
    private func value(_ name: String, in headers: HTTPFields) -> String? {
        let pairs = headers[values: .cookie].flatMap { $0.split(separator: ";") }.compactMap { pair -> String? in
            let pair = pair.drop { $0 == " " }
            return pair.hasPrefix(name + "=") ? String(pair.dropFirst(name.utf8.count + 1)) : nil
        }
        guard pairs.count == 1, (1...Self.bytesMax).contains(pairs[0].utf8.count) else { return nil }
        return pairs[0]
    }
}

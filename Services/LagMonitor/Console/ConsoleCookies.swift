import Essentials
import HTTPTypes
import Identity

/// The console's cookies, which scripts cannot read.
struct ConsoleCookies: Sendable {
    let isSecure: Bool

    /// The time limit of a login, in seconds.
    private static let loginSecondsMax = 600
    private static let bytesMax = 256

    /// With TLS, this prefix prevents other hosts and plain HTTP from setting the cookie (RFC 6265bis).
    private var prefix: String { isSecure ? "__Host-" : "" }
    private var session: String { prefix + "fieldpost-console" }
    private var login: String { prefix + "fieldpost-console-login" }

    /// Returns the cookie of a session. Browsers do not send it with requests from other sites, including links.
    func begin(_ id: String, seconds: Int64) -> String {
        attributes("\(session)=\(id)", "Strict", seconds: seconds)
    }

    /// Returns the cookie that binds a login's response to the browser. Sent with top-level navigations from other
    /// sites, because the provider redirects the browser back.
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

    /// Returns the authentication request that this browser started.
    func login(in headers: HTTPFields) -> AuthorizationRequest? {
        let parts = value(login, in: headers)?.split(separator: ".").map(String.init) ?? []
        guard parts.count == 3, parts.allSatisfy({ $0.utf8.count == 43 && $0.utf8.allSatisfy(Base64URL.contains) })
        else { return nil }
        return AuthorizationRequest(state: parts[0], nonce: parts[1], verifier: parts[2])
    }

    /// Returns the value of a cookie that occurs once; a duplicate indicates that one was planted.
    private func value(_ name: String, in headers: HTTPFields) -> String? {
        let pairs = headers[values: .cookie].flatMap { $0.split(separator: ";") }.compactMap { pair -> String? in
            let pair = pair.drop { $0 == " " }
            return pair.hasPrefix(name + "=") ? String(pair.dropFirst(name.utf8.count + 1)) : nil
        }
        guard pairs.count == 1, (1...Self.bytesMax).contains(pairs[0].utf8.count) else { return nil }
        return pairs[0]
    }
}

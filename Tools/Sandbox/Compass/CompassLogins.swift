import Essentials
import FoundationEssentials

/// Tokens of logins: JWTs with the claims of the vendor's documents. The signature is random, since only this emulator
/// accepts them, until a restart.
struct CompassLogins: Sendable {
    static let countMax = 50_000

    private var holders: [String: (user: String, expiresAtMs: Int64)] = [:]

    /// A new token.
    mutating func token(of user: String, repository: String, database: String, nowMs: Int64, seconds: Int) -> String {
        let header: JSON = ["alg": "HS512"]
        let claims: JSON = [
            "sub": .string(user), "repo": .string(repository), "db": .string(database),
            "iat": .number(Int(nowMs / 1_000)), "exp": .number(Int(nowMs / 1_000) + seconds),
            "jti": .string(UUID().uuidString),
        ]
        let parts = [Base64URL.text(header.bytes), Base64URL.text(claims.bytes), Base64URL.random(byteCount: 64)]
        let token = parts.joined(separator: ".")
        if holders.count >= Self.countMax { holders.removeAll() }
        holders[token] = (user, nowMs + Int64(seconds) * 1_000)
        return token
    }

    /// The user of a token; `nil` if it is unknown or expired.
    mutating func user(of token: String, nowMs: Int64) -> String? {
        guard let holder = holders[token] else { return nil }
        guard nowMs < holder.expiresAtMs else {
            holders[token] = nil
            return nil
        }
        return holder.user
    }

    mutating func end(_ token: String) { holders[token] = nil }

    mutating func endAll() { holders.removeAll() }
}

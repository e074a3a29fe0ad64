import Crypto
import Essentials
import FoundationEssentials

/// Tokens of logins: JWTs with the claims of the vendor's documents, signed with HS512 by a key that is lost with a
/// restart.
struct CompassLogins: Sendable {
    private struct Claims: Encodable {
        let sub, repo, db: String
        let iat, exp: Int
        let jti: UUID
    }

    private struct Holder {
        let user: String
        let expiresAtMs: Int64
    }

    static let countMax = 50_000

    private let key = SymmetricKey(size: .bits256)
    private var holders: [String: Holder] = [:]

    /// A new token.
    mutating func token(of user: String, repository: String, database: String, nowMs: Int64, seconds: Int) -> String {
        let claims = Claims(
            sub: user, repo: repository, db: database, iat: Int(nowMs / 1_000), exp: Int(nowMs / 1_000) + seconds,
            jti: UUID())
        let payload = (try? JSONEncoder().encode(claims)) ?? Data()
        let text = Base64URL.text(Data(#"{"alg":"HS512"}"#.utf8)) + "." + Base64URL.text(payload)
        let signature = HMAC<SHA512>.authenticationCode(for: Data(text.utf8), using: key)
        let token = text + "." + Base64URL.text(Data(signature))
        if holders.count >= Self.countMax { holders.removeAll() }
        holders[token] = Holder(user: user, expiresAtMs: nowMs + Int64(seconds) * 1_000)
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

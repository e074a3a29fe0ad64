import Crypto
package import Essentials
import FoundationEssentials
import Synchronization

/// Identifies the sender to Apple Push Notification service with a token that is signed by the team's key.
///
/// Source: Apple, "Establishing a token-based connection to APNs" (User Notifications).
package final class APNsSender: Sendable {
    private let key: P256.Signing.PrivateKey
    private let keyID: String
    private let team: String
    private let issued = Mutex<(token: String, at: Timestamp)?>(nil)

    /// Age at which a token is replaced. APNs rejects tokens that are older than an hour.
    package static let lifetime = Duration.seconds(2_400)
    /// Minimum time between two tokens. APNs rejects more frequent ones (`TooManyProviderTokenUpdates`).
    package static let updateMin = Duration.seconds(1_200)

    /// - Parameters:
    ///   - key: The content of the `.p8` file.
    ///   - keyID: The key's id, 10 characters.
    ///   - team: The id of the developer team, 10 characters.
    /// - Returns: `nil` if the key is not a private key of P-256.
    package init?(key: String, keyID: String, team: String) {
        guard let key = try? P256.Signing.PrivateKey(pemRepresentation: key) else { return nil }
        (self.key, self.keyID, self.team) = (key, keyID, team)
    }

    /// Returns the current token, or a new one after ``lifetime``.
    package func token(at now: Timestamp) throws -> String {
        try issued.withLock { issued in
            if let issued, now < issued.at.adding(Self.lifetime) { return issued.token }
            let token = try newToken(at: now)
            issued = (token, now)
            return token
        }
    }

    /// Discards a token that APNs has rejected as expired.
    ///
    /// - Returns: Whether another token is available now: not within ``updateMin`` after the rejected one was issued.
    package func discard(_ token: String, at now: Timestamp) -> Bool {
        issued.withLock { current in
            guard let found = current, found.token == token else { return true }
            guard found.at.adding(Self.updateMin) <= now else { return false }
            current = nil
            return true
        }
    }

    private func newToken(at now: Timestamp) throws -> String {
        struct Claims: Encodable {
            let iss: String
            let iat: Int64
        }
        return try SignedToken.text(
            SignedToken.Header(alg: "ES256", kid: keyID), Claims(iss: team, iat: now.millisecondsSinceEpoch / 1_000)
        ) { try key.signature(for: $0).rawRepresentation }
    }
}

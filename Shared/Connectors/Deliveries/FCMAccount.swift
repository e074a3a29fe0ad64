import Crypto
import CryptoExtras
package import Essentials
import FoundationEssentials

/// A service account of a Firebase project, which requests access tokens for Firebase Cloud Messaging.
///
/// Source: Google, "Using OAuth 2.0 for Server to Server Applications"; RFC 7523.
package struct FCMAccount: Sendable {
    /// The reason why a service account's file is not usable. It contains nothing of the secret.
    package struct FormatError: Error, Equatable, CustomStringConvertible {
        package let description: String
    }

    /// The members of the file that are used.
    private struct File: Decodable {
        let type: String
        let project_id: String
        let private_key_id: String
        let private_key: String
        let client_email: String
        let token_uri: String
    }

    package let project: String
    /// The URL that issues access tokens.
    package let tokenURL: String
    private let email: String
    private let keyID: String
    private let key: _RSA.Signing.PrivateKey

    private static let scope = "https://www.googleapis.com/auth/firebase.messaging"
    /// Lifetime of an assertion; the maximum.
    private static let lifetimeSeconds: Int64 = 3_600

    /// - Parameter json: The content of the file that the Google Cloud console creates for a key.
    package init(json: [UInt8]) throws(FormatError) {
        guard let file = try? JSONDecoder().decode(File.self, from: Data(json)), file.type == "service_account" else {
            throw FormatError(description: "it is not the JSON file of a service account's key")
        }
        guard let key = try? _RSA.Signing.PrivateKey(pemRepresentation: file.private_key) else {
            throw FormatError(description: "'private_key' is not an RSA key of at least 2048 bits")
        }
        guard file.token_uri.hasPrefix("https://") else {
            throw FormatError(description: "'token_uri' is not an https URL")
        }
        guard !file.project_id.isEmpty, file.project_id.utf8.allSatisfy(Self.isProjectByte) else {
            throw FormatError(description: "'project_id' is not the id of a project")
        }
        (project, tokenURL, email, keyID) = (file.project_id, file.token_uri, file.client_email, file.private_key_id)
        self.key = key
    }

    /// Project ids have lower-case letters, digits and hyphens; old ones a domain in front.
    private static func isProjectByte(_ byte: UInt8) -> Bool {
        Base64URL.contains(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: ":")
    }

    /// Returns the form fields of a request for an access token.
    package func tokenRequest(at now: Timestamp) throws -> FormFields {
        struct Claims: Encodable {
            let iss, scope, aud: String
            let iat, exp: Int64
        }
        let seconds = now.millisecondsSinceEpoch / 1_000
        let claims = Claims(
            iss: email, scope: Self.scope, aud: tokenURL, iat: seconds, exp: seconds + Self.lifetimeSeconds)
        let assertion = try SignedToken.text(
            SignedToken.Header(alg: "RS256", kid: keyID, typ: "JWT"), claims
        ) { try key.signature(for: $0, padding: .insecurePKCS1v1_5).rawRepresentation }
        var fields = FormFields()
        fields.add("grant_type", "urn:ietf:params:oauth:grant-type:jwt-bearer")
        fields.add("assertion", assertion)
        return fields
    }
}

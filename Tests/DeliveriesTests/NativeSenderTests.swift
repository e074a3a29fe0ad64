import Crypto
import CryptoExtras
import Essentials
import FoundationEssentials
import Testing

@testable import Deliveries

/// The sender's credentials for APNs and FCM.
@Suite struct NativeSenderTests {
    private let now = Timestamp(millisecondsSinceEpoch: 1_780_000_000_500)

    private func parts(_ token: String) throws -> [[UInt8]] {
        try token.split(separator: ".").map { try #require(Base64URL.bytes($0.utf8)) }
    }

    @Test func providerTokenIdentifiesTheTeam() throws {
        let key = P256.Signing.PrivateKey()
        let sender = try #require(APNsSender(key: key.pemRepresentation, keyID: "ABC123DEFG", team: "DEF123GHIJ"))
        let token = try sender.token(at: now)
        let parts = try parts(token)
        #expect(String(decoding: parts[0], as: UTF8.self) == #"{"alg":"ES256","kid":"ABC123DEFG"}"#)
        #expect(String(decoding: parts[1], as: UTF8.self) == #"{"iat":1780000000,"iss":"DEF123GHIJ"}"#)
        let signed = token.utf8.prefix(token.utf8.count - 87)
        #expect(
            key.publicKey.isValidSignature(
                try P256.Signing.ECDSASignature(rawRepresentation: parts[2]), for: Array(signed)))
        #expect(token.utf8.count <= 4_096)
    }

    /// APNs accepts a token for an hour, and a new one at most every 20 minutes.
    @Test func providerTokenIsRenewedWithinTheLimits() throws {
        let sender = try #require(
            APNsSender(key: P256.Signing.PrivateKey().pemRepresentation, keyID: "A", team: "B"))
        let first = try sender.token(at: now)
        #expect(try sender.token(at: now.adding(.seconds(2_399))) == first)
        #expect(!sender.discard(first, at: now.adding(.seconds(1_199))), "APNs would reject another one")
        #expect(try sender.token(at: now.adding(.seconds(1_199))) == first)
        #expect(sender.discard(first, at: now.adding(.seconds(1_200))))
        let second = try sender.token(at: now.adding(.seconds(1_200)))
        #expect(second != first && sender.discard(first, at: now.adding(.seconds(1_201))), "it is replaced already")
        #expect(try sender.token(at: now.adding(.seconds(1_201))) == second)
        #expect(try sender.token(at: now.adding(.seconds(3_600))) != second)
    }

    @Test(arguments: ["", "x", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----"])
    func malformedAppleKeyIsRejected(key: String) {
        #expect(APNsSender(key: key, keyID: "A", team: "B") == nil)
    }

    private static func account(_ changes: [String: String?] = [:]) throws -> [UInt8] {
        var members: [String: String] = [
            "type": "service_account", "project_id": "example-app", "private_key_id": "1f2e3d",
            "private_key": try _RSA.Signing.PrivateKey(keySize: .bits2048).pemRepresentation,
            "client_email": "push@example-app.iam.gserviceaccount.com",
            "token_uri": "https://oauth2.googleapis.com/token",
        ]
        for (name, value) in changes { members[name] = value }
        return Array(try JSONEncoder().encode(members))
    }

    @Test func accessTokenIsRequestedForMessagingOnly() throws {
        let account = try FCMAccount(json: try Self.account())
        #expect(account.project == "example-app" && account.tokenURL == "https://oauth2.googleapis.com/token")
        let fields = try account.tokenRequest(at: now)
        #expect(fields["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer")
        let parts = try parts(try #require(fields["assertion"]))
        #expect(String(decoding: parts[0], as: UTF8.self) == #"{"alg":"RS256","kid":"1f2e3d","typ":"JWT"}"#)
        #expect(
            String(decoding: parts[1], as: UTF8.self)
                == #"{"aud":"https://oauth2.googleapis.com/token","exp":1780003600,"iat":1780000000,"#
                + #""iss":"push@example-app.iam.gserviceaccount.com","#
                + #""scope":"https://www.googleapis.com/auth/firebase.messaging"}"#)
        #expect(parts[2].count == 256)
    }

    @Test func malformedAccountIsRejectedWithoutItsSecret() throws {
        for (changes, reason) in [
            (["type": "authorized_user"], "JSON file"), (["client_email": nil], "JSON file"),
            (["private_key": "secret"], "'private_key'"), (["token_uri": "http://a.b"], "'token_uri'"),
            (["project_id": "a/../b"], "'project_id'"), (["project_id": ""], "'project_id'"),
        ] as [([String: String?], String)] {
            let json = try Self.account(changes)
            do throws(FCMAccount.FormatError) {
                _ = try FCMAccount(json: json)
                Issue.record("\(changes) is accepted")
            } catch {
                #expect(error.description.contains(reason) && !error.description.contains("secret"), "\(changes)")
            }
        }
    }
}

import Crypto
import Foundation
import Model
import Postgres
import Secrets
import Tenants
import TestSupport
import Testing

/// `fieldpost environment deliveries`.
@Suite(.ownThreads) struct DeliveriesCommandTests {
    private let conninfo: String
    private static let key = Data(repeating: 3, count: 32).base64EncodedString()
    private static let id = EnvironmentID(rawValue: 1)

    init() throws {
        conninfo = try makeFoundationDatabase()
        var connection = try Connection(conninfo)
        try EnvironmentRows(id: 1, name: "acme").insert(on: &connection)
    }

    private func run(_ arguments: String..., keys: String = key) throws -> CommandResult {
        try fieldpost(
            ["environment", "deliveries"] + arguments,
            environment: [
                "FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": keys, "PASSWORD": "of the post",
            ])
    }

    private func stored() throws -> DeliverySettings? {
        var connection = try Connection(conninfo)
        return try DeliverySettings.load(Self.id, on: &connection)
    }

    private func opened(_ sealed: Bytea?, _ which: SecretContext.DeliverySecret, key: String = key) throws -> [UInt8] {
        try SecretBox([key]).open(try #require(sealed).bytes, at: SecretContext.delivery(which, in: Self.id))
    }

    @Test func omittedOptionsKeepStoredValues() throws {
        #expect(try run("show", "acme").output.contains("no host"))
        #expect(try run("secret", "acme").errors.contains("acme has no webhooks"))
        let first = try run("set", "acme", "--webhook-host", "Hooks.example.com", "--webhook-host", "b.example.com")
        #expect(first.status == 0 && first.output.contains("b.example.com, hooks.example.com"), "\(first.errors)")
        let mail = try run(
            "set", "acme", "--smtp", "smtp://mail.example.com:587", "--smtp-user", "me", "--smtp-password-from",
            "PASSWORD", "--mail-from", "Post@example.com")
        #expect(mail.status == 0, "\(mail.errors)")
        let push = try run("set", "acme", "--push-contact", "mailto:it@example.com", "--private-addresses", "--json")
        let row = try #require(try push.rows().first)
        #expect(row["webhookHosts"] as? [String] == ["b.example.com", "hooks.example.com"])
        #expect(row["mailFrom"] as? String == "post@example.com" && row["privateAddresses"] as? Bool == true)
        let settings = try #require(try stored())
        #expect(try opened(settings.mailPassword, .mail) == Array("of the post".utf8))
        // The public key for browsers belongs to the sealed private key, and is kept.
        let key = try P256.Signing.PrivateKey(rawRepresentation: opened(settings.pushKey, .push))
        #expect(Data(key.publicKey.x963Representation).base64EncodedString().hasPrefix("B"))
        #expect(row["pushKey"] as? String == settings.pushPublicKey && settings.pushPublicKey?.utf8.count == 87)
        #expect(
            try run("set", "acme", "--no-push").status == 0
                && run("set", "acme", "--push-contact", "https://a.b").status == 0)
        #expect(try stored()?.pushKey == settings.pushKey && stored()?.webhookSecret == settings.webhookSecret)
        #expect(try run("set", "acme", "--no-email", "--no-webhooks", "--no-private-addresses").status == 0)
        let after = try #require(try stored())
        #expect(after.mailServer == nil && after.mailPassword == nil && after.webhookHosts.isEmpty)
        #expect(!after.allowsPrivate)
        #expect(try run("remove", "acme").status == 0 && stored() == nil)
        #expect(try run("remove", "acme").status != 0)
    }

    @Test func webhookSecretIsPrintedAndRenewed() throws {
        #expect(try run("set", "acme", "--webhook-host", "hooks.example.com").status == 0)
        let secret = try run("secret", "acme").output
        #expect(try secret.hasPrefix("whsec_") && run("secret", "acme").output == secret)
        let renewed = try run("secret", "acme", "--renew").output
        #expect(renewed.hasPrefix("whsec_") && renewed != secret)
        #expect(try run("secret", "acme").output == renewed)
        // It is neither readable in the database nor in the output.
        var connection = try Connection(conninfo)
        let dump = try connection.run("SELECT delivery::text FROM backend.delivery")[0].decode(String.self)
        #expect(!dump.contains("whsec_"))
        #expect(try !run("show", "acme", "--json").output.contains("whsec_"))
    }

    @Test func deliverySecretsAreResealed() throws {
        #expect(
            try run(
                "set", "acme", "--webhook-host", "a.b", "--push-contact", "mailto:it@example.com", "--smtp",
                "smtps://mail.example.com", "--mail-from", "a@example.com", "--smtp-user", "me",
                "--smtp-password-from", "PASSWORD"
            ).status == 0)
        let other = Data(repeating: 4, count: 32).base64EncodedString()
        let result = try fieldpost(
            ["secrets", "seal"],
            environment: ["FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": "\(other),\(Self.key)"])
        #expect(result.status == 0, "\(result.errors)")
        let settings = try #require(try stored())
        #expect(try opened(settings.mailPassword, .mail, key: other) == Array("of the post".utf8))
        #expect(try opened(settings.pushKey, .push, key: other).count == 32)
        #expect(try opened(settings.webhookSecret, .webhook, key: other).starts(with: "whsec_".utf8))
    }

    @Test(arguments: [
        (["--webhook-host", "https://a.b"], "--webhook-host"), (["--webhook-host", "a b"], "--webhook-host"),
        (["--webhook-host", "a.b:443"], "--webhook-host"), (["--smtp", "http://a.b"], "--smtp"),
        (["--smtp", "smtp://a.b/x"], "--smtp"), (["--smtp", "smtp://u@a.b"], "--smtp"),
        (["--smtp", "smtp://a.b"], "--smtp needs --mail-from"), (["--mail-from", "x"], "--mail-from"),
        (["--mail-from", "a@b.c\r\nBcc: x@y.z"], "--mail-from"),
        (["--push-contact", "it@example.com"], "--push-contact"),
        (["--push-contact", "http://a.b"], "--push-contact"),
        (["--no-email", "--smtp", "smtp://a.b"], "give the options of a channel"),
        (["--smtp-user", "me"], "needs --smtp-password-from"),
    ])
    func invalidInputIsRejected(options: [String], reason: String) throws {
        let result = try fieldpost(
            ["environment", "deliveries", "set", "acme"] + options,
            environment: ["FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": Self.key])
        #expect(result.status != 0 && result.errors.contains(reason), "\(result.errors)")
        #expect(try stored() == nil)
    }

    @Test func missingSecretKeyPreventsStoring() throws {
        let result = try run("set", "acme", "--webhook-host", "a.b", keys: "")
        #expect(result.status != 0 && result.errors.contains("FIELDPOST_SECRET_KEYS"), "\(result.errors)")
        #expect(try stored() == nil)
    }
}

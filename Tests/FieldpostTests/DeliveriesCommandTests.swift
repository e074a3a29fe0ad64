import Crypto
import CryptoExtras
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

    private static let account = """
        {"type": "service_account", "project_id": "example-app", "private_key_id": "1", "client_email": "a@b.c",
        "token_uri": "https://oauth2.googleapis.com/token", "private_key": "PEM"}
        """

    /// Runs `set` with the keys of APNs and FCM in variables.
    private func setNative(
        _ arguments: [String], apple: String? = nil, google: String? = nil
    ) throws -> CommandResult {
        let pem = try _RSA.Signing.PrivateKey(keySize: .bits2048).pemRepresentation.replacing("\n", with: "\\n")
        return try fieldpost(
            ["environment", "deliveries", "set", "acme"] + arguments,
            environment: [
                "FIELDPOST_DATABASE_URL": conninfo, "FIELDPOST_SECRET_KEYS": Self.key,
                "APNS_KEY": apple ?? P256.Signing.PrivateKey().pemRepresentation,
                "FCM_ACCOUNT": google ?? Self.account.replacing("PEM", with: pem),
            ])
    }

    @Test func nativeSendersAreStoredAndRemoved() throws {
        let apns = ["--apns-key-from", "APNS_KEY", "--apns-key-id", "ABC123DEFG", "--apns-team", "DEF123GHIJ"]
        #expect(try setNative(apns).errors.contains("--apns-topic"))
        let first = try setNative(
            apns + ["--apns-topic", "com.example.app", "--fcm-account-from", "FCM_ACCOUNT", "--json"])
        #expect(first.status == 0, "\(first.errors)")
        let row = try #require(try first.rows().first)
        #expect(row["apnsTopic"] as? String == "com.example.app" && row["fcmProject"] as? String == "example-app")
        #expect(!first.output.contains("PRIVATE KEY"))
        let stored = try #require(try self.stored())
        #expect(stored.apns?.server == "https://api.push.apple.com")
        #expect(stored.fcm?.server == "https://fcm.googleapis.com")
        #expect(try String(decoding: opened(stored.apns?.key, .apns), as: UTF8.self).contains("BEGIN PRIVATE KEY"))
        #expect(try String(decoding: opened(stored.fcm?.account, .fcm), as: UTF8.self).contains("service_account"))
        // Each option keeps the others.
        let changed = try setNative(
            ["--apns-server", "https://api.sandbox.push.apple.com", "--fcm-server", "https://fcm.example.com"])
        #expect(changed.status == 0, "\(changed.errors)")
        let after = try #require(try self.stored())
        #expect(after.apns?.key == stored.apns?.key && after.apns?.server == "https://api.sandbox.push.apple.com")
        #expect(after.fcm?.account == stored.fcm?.account && after.fcm?.server == "https://fcm.example.com")
        #expect(try setNative(["--no-apns", "--no-fcm"]).status == 0)
        #expect(try self.stored()?.apns == nil && self.stored()?.fcm == nil)
    }

    @Test func unusableNativeKeysAreRejected() throws {
        let apple = try setNative(
            [
                "--apns-key-from", "APNS_KEY", "--apns-key-id", "ABC123DEFG", "--apns-team", "DEF123GHIJ",
                "--apns-topic", "com.example.app",
            ], apple: "no key")
        #expect(apple.status != 0 && apple.errors.contains("APNS_KEY is not the content of a .p8 file"))
        let google = try setNative(["--fcm-account-from", "FCM_ACCOUNT"], google: #"{"type": "authorized_user"}"#)
        #expect(google.status != 0 && google.errors.contains("FCM_ACCOUNT is not usable"))
        #expect(try stored() == nil)
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
        (["--apns-key-id", "short"], "--apns-key-id"), (["--apns-team", "a b"], "--apns-team"),
        (["--apns-topic", "com/example"], "--apns-topic"), (["--apns-server", "http://a.b"], "--apns-server"),
        (["--fcm-server", "https://a.b/v1"], "--fcm-server"),
        (["--fcm-server", "https://a.b"], "needs --fcm-account-from"),
        (["--fcm-account-from", "NONE"], "NONE is not set"),
        (["--no-apns", "--apns-topic", "a.b"], "give the options of a channel"),
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

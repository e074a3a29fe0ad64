import Crypto
import Deliveries
import Essentials
import HTTPClient
import Model
import Postgres
import Secrets
import Synchronization
import Tenants

/// Makes the delivery clients of all environments.
final class DeliveryClientFactory: Sendable {
    /// Connects to public Internet addresses only.
    private let publicClient: Client
    /// Connects to any address, for environments that allow it.
    private let privateClient: Client
    private let mail: MailClient
    private let secrets: SecretBox
    private let callMax: Duration
    private let metrics: DeliveryMetrics
    private let now: @Sendable () -> Timestamp
    private let senders = Mutex<[EnvironmentID: NativeSenders]>([:])

    /// The native senders of an environment. All workers of the process share their tokens, because vendors limit how
    /// often a token is renewed.
    private struct NativeSenders {
        var apns: (settings: DeliverySettings.APNs, sender: APNsSender?)?
        var fcm: (settings: DeliverySettings.FCM, sender: FCMSender?)?
    }

    /// - Parameters:
    ///   - caFile: A PEM file of certificate authorities in addition to the system's.
    ///   - callMax: Timeout of a single call.
    ///   - secrets: Decrypts sealed secrets.
    init(
        caFile: String? = nil, callMax: Duration, secrets: SecretBox, metrics: DeliveryMetrics = DeliveryMetrics(),
        now: @escaping @Sendable () -> Timestamp = { Timestamp.now() }
    ) {
        var configuration = Client.Configuration()
        configuration.caFile = caFile
        privateClient = Client(configuration: configuration)
        mail = MailClient(configuration: configuration)
        configuration.publicAddressesOnly = true
        publicClient = Client(configuration: configuration)
        self.callMax = callMax
        self.secrets = secrets
        self.metrics = metrics
        self.now = now
    }

    /// Returns the delivery client of an environment.
    ///
    /// - Throws: `SecretBox.Failure` if a secret cannot be decrypted.
    func client(_ settings: DeliverySettings) throws(SecretBox.Failure) -> DeliveryClient {
        func decrypted(_ sealed: [UInt8], _ which: SecretContext.DeliverySecret) throws(SecretBox.Failure) -> [UInt8] {
            try secrets.open(sealed, at: SecretContext.delivery(which, in: settings.environment))
        }
        var client = DeliveryClient(
            publicClient: publicClient, namedHostClient: settings.allowsPrivate ? privateClient : publicClient,
            namedHosts: settings.webhookHosts, mail: mail, callMax: callMax, metrics: metrics, now: now)
        if let sealed = settings.webhookSecret {
            let secret = String(decoding: try decrypted(sealed.bytes, .webhook), as: UTF8.self)
            client.signature = WebhookSignature(secret: secret)
        }
        if let server = settings.mailServer, let sender = settings.mailFrom {
            var login: (user: String, password: String)?
            if let user = settings.mailUser, let sealed = settings.mailPassword {
                login = (user, String(decoding: try decrypted(sealed.bytes, .mail), as: UTF8.self))
            }
            client.mailAccount = DeliveryClient.MailAccount(server: server, login: login, sender: sender)
        }
        if let contact = settings.pushContact, let sealed = settings.pushKey {
            let key = try? P256.Signing.PrivateKey(rawRepresentation: try decrypted(sealed.bytes, .push))
            client.sender = key.map { PushSender(key: $0, contact: contact) }
        }
        if let apns = settings.apns {
            let key = String(decoding: try decrypted(apns.key.bytes, .apns), as: UTF8.self)
            client.apple = sender(apns, key: key, of: settings.environment).map {
                DeliveryClient.AppleSender(sender: $0, topic: apns.topic, server: apns.server)
            }
        }
        if let fcm = settings.fcm {
            let account = try decrypted(fcm.account.bytes, .fcm)
            client.firebase = sender(fcm, account: account, of: settings.environment).map {
                DeliveryClient.FirebaseSender(sender: $0, server: fcm.server)
            }
        }
        return client
    }

    /// Returns the environment's sender, with its current token unless the settings have changed.
    private func sender(
        _ settings: DeliverySettings.APNs, key: String, of environment: EnvironmentID
    ) -> APNsSender? {
        senders.withLock { senders in
            if let known = senders[environment]?.apns, known.settings == settings { return known.sender }
            let sender = APNsSender(key: key, keyID: settings.keyID, team: settings.team)
            senders[environment, default: NativeSenders()].apns = (settings, sender)
            return sender
        }
    }

    private func sender(
        _ settings: DeliverySettings.FCM, account: [UInt8], of environment: EnvironmentID
    ) -> FCMSender? {
        senders.withLock { senders in
            if let known = senders[environment]?.fcm, known.settings == settings { return known.sender }
            let sender = (try? FCMAccount(json: account)).map { FCMSender($0) }
            senders[environment, default: NativeSenders()].fcm = (settings, sender)
            return sender
        }
    }
}

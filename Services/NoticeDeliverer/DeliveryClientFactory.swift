import Crypto
import Deliveries
import Essentials
import HTTPClient
import Postgres
import Secrets
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
        return client
    }
}

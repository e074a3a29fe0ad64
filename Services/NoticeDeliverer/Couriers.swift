import Crypto
import Deliveries
import Essentials
import HTTPClient
import Postgres
import Secrets
import Tenants

/// The clients by which all environments' notices are carried.
final class Couriers: Sendable {
    /// Connects to addresses of the public Internet only.
    private let open: Client
    /// Connects to any address, for environments that allow it.
    private let inner: Client
    private let mail: MailClient
    private let secrets: SecretBox
    private let callMax: Duration
    private let metrics: DeliveryMetrics
    private let now: @Sendable () -> Timestamp

    /// - Parameters:
    ///   - caFile: A PEM file of the certificate authorities to trust instead of the system's.
    ///   - callMax: The longest that a single call may take.
    ///   - secrets: Opens sealed secrets.
    init(
        caFile: String? = nil, callMax: Duration, secrets: SecretBox, metrics: DeliveryMetrics = DeliveryMetrics(),
        now: @escaping @Sendable () -> Timestamp = { Timestamp.now() }
    ) {
        var configuration = Client.Configuration()
        configuration.caFile = caFile
        inner = Client(configuration: configuration)
        mail = MailClient(configuration: configuration)
        configuration.publicAddressesOnly = true
        open = Client(configuration: configuration)
        self.callMax = callMax
        self.secrets = secrets
        self.metrics = metrics
        self.now = now
    }

    /// How an environment's notices are carried.
    ///
    /// - Throws: `SecretBox.Failure` when a secret does not open.
    func courier(_ settings: DeliverySettings) throws(SecretBox.Failure) -> Courier {
        func opened(_ sealed: [UInt8], _ which: DeliverySettings.Secret) throws(SecretBox.Failure) -> [UInt8] {
            try secrets.open(sealed, at: which.context(settings.environment))
        }
        var courier = Courier(
            open: open, named: settings.allowsPrivate ? inner : open, namedHosts: settings.webhookHosts, mail: mail,
            callMax: callMax, metrics: metrics, now: now)
        if let sealed = settings.webhookSecret {
            let secret = String(decoding: try opened(sealed.bytes, .webhook), as: UTF8.self)
            courier.signature = WebhookSignature(secret: secret)
        }
        if let server = settings.mailServer, let sender = settings.mailFrom {
            var login: (user: String, password: String)?
            if let user = settings.mailUser, let sealed = settings.mailPassword {
                login = (user, String(decoding: try opened(sealed.bytes, .mail), as: UTF8.self))
            }
            courier.post = Courier.Post(server: server, login: login, sender: sender)
        }
        if let contact = settings.pushContact, let sealed = settings.pushKey {
            let key = try? P256.Signing.PrivateKey(rawRepresentation: try opened(sealed.bytes, .push))
            courier.sender = key.map { PushSender(key: $0, contact: contact) }
        }
        return courier
    }
}

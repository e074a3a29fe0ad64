import Crypto
import Essentials
import FoundationEssentials
import Postgres
import Secrets

/// The credential with which a device renews its token: a constant device id of 256 random bits and a rotating secret
/// from a ``SecretIssuer``. Only the SHA-256 hashes of both are stored.
struct DeviceCredential: Sendable {
    let device: Capability
    let secret: Capability

    /// The credential as the device receives it: 87 characters.
    var text: String { device.text + "." + secret.text }

    /// Creates the first credential of a new device.
    init(by issuer: SecretIssuer) {
        let device = Capability()
        self.init(device: device, secret: issuer.secret(for: device))
    }

    /// The device's id for others, which does not grant access: the SHA-256 hash of its secret id, as 64 hexadecimal
    /// digits. A push target refers to it.
    var deviceID: String {
        device.key.bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    }

    private init(device: Capability, secret: Capability) {
        self.device = device
        self.secret = secret
    }

    /// Parses a received credential; `nil` if it is malformed.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let device = Capability(parts[0]), let secret = Capability(parts[1]) else { return nil }
        self.init(device: device, secret: secret)
    }

    /// Returns a credential of the same device with a new secret.
    func successor(by issuer: SecretIssuer) -> DeviceCredential {
        DeviceCredential(device: device, secret: issuer.secret(for: device))
    }
}

/// A bearer secret of 256 random bits. Only its SHA-256 hash is stored.
struct Capability: Sendable {
    /// 43 characters of base64url.
    let text: String

    private static let length = 43

    /// Creates a random one with the system's generator (getrandom(2)).
    init() { text = Base64URL.random(byteCount: 32) }

    /// - Parameter bytes: Exactly 32.
    init(_ bytes: [UInt8]) { text = Base64URL.text(bytes) }

    /// Parses a received one; `nil` if it is malformed.
    init?(_ text: some StringProtocol) {
        guard text.utf8.count == Self.length, text.utf8.allSatisfy(Base64URL.contains) else { return nil }
        self.text = String(text)
    }

    /// Its SHA-256 hash, by which it is looked up.
    var key: Bytea { Self.key(of: text) }

    static func key(of text: String) -> Bytea { Bytea(Array(SHA256.hash(data: Array(text.utf8)))) }
}

/// Issues the secrets of device credentials, and recognises every issued secret regardless of age.
///
/// A secret is 128 random bits and 128 bits of HMAC-SHA256 over them and the device's id. This distinguishes a spent
/// secret, which revokes the device, from a guess, which has no effect, without storing spent secrets.
struct SecretIssuer: Sendable {
    private let keys: [SymmetricKey]

    private static let halfCount = 16

    init(_ secrets: SecretBox) { keys = secrets.keys(for: "device-credential") }

    /// Issues a new secret for a device.
    func secret(for device: Capability) -> Capability {
        var generator = SystemRandomNumberGenerator()
        let random = (0..<Self.halfCount).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        guard let key = keys.first else { return Capability() }
        return Capability(random + Self.code(random, device, key))
    }

    /// Whether a secret was issued for the device, with a key that is still configured.
    func hasIssued(_ secret: Capability, for device: Capability) -> Bool {
        guard let bytes = Base64URL.bytes(secret.text.utf8), bytes.count == 2 * Self.halfCount else { return false }
        let (random, code) = (Array(bytes.prefix(Self.halfCount)), bytes.suffix(Self.halfCount))
        // Constant-time comparison.
        return keys.contains { zip(Self.code(random, device, $0), code).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0 }
    }

    private static func code(_ random: [UInt8], _ device: Capability, _ key: SymmetricKey) -> [UInt8] {
        var hash = HMAC<SHA256>(key: key)
        hash.update(data: random)
        hash.update(data: Array(device.text.utf8))
        return Array(hash.finalize().prefix(halfCount))
    }
}

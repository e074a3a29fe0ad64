import Crypto
import Essentials
import Secrets

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

import Postgres

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

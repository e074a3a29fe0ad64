import Postgres

/// What a device renews its token with: a name of the device, which stays, and a secret, which is another one after
/// each use. The name has 256 random bits, the secret is of a ``SecretIssuer``. Only the SHA-256 of both is stored.
struct DeviceCredential: Sendable {
    let device: Capability
    let secret: Capability

    /// What the device gets: 87 characters.
    var text: String { device.text + "." + secret.text }

    /// The first of a device.
    init(by issuer: SecretIssuer) {
        let device = Capability()
        self.init(device: device, secret: issuer.secret(for: device))
    }

    private init(device: Capability, secret: Capability) {
        self.device = device
        self.secret = secret
    }

    /// One that somebody sent; `nil` when it cannot be one.
    init?(_ text: String) {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 2, let device = Capability(parts[0]), let secret = Capability(parts[1]) else { return nil }
        self.init(device: device, secret: secret)
    }

    /// Another one of the same device.
    func successor(by issuer: SecretIssuer) -> DeviceCredential {
        DeviceCredential(device: device, secret: issuer.secret(for: device))
    }
}

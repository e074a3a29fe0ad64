/// Decides whether a device credential is accepted. Pure functions of the device's stored state.
enum DeviceRule {
    /// The stored state of a device.
    struct StoredDevice<Secret: Equatable & Sendable>: Equatable, Sendable {
        /// The newest issued secret; `nil` once the device is revoked.
        var newest: Secret?
        /// The secret that `newest` replaces. Accepted until `newest` is used, because the response may have been lost.
        var former: Secret?
        /// Whether the person is still bound to the account of the device's login, at the environment's provider.
        var isBound = true
        /// The remaining lease of another renewal of the device's token.
        var busySeconds = 0.0
    }

    enum Decision: Equatable, Sendable {
        case renew
        case busy(seconds: Int)
        /// The secret was spent and its successor used: the credential was copied.
        case reused
        /// The device or its person was revoked.
        case ended
    }

    static func decide<Secret>(_ stored: StoredDevice<Secret>, secret: Secret) -> Decision {
        guard let newest = stored.newest, stored.isBound else { return .ended }
        guard secret == newest || secret == stored.former else { return .reused }
        guard stored.busySeconds <= 0 else { return .busy(seconds: Int(stored.busySeconds.rounded(.up))) }
        return .renew
    }
}

/// The reason why a device needs a login. The code is for programs, the problem's detail for people.
enum LoginReason: String, Sendable {
    /// The credential does not exist: it expired or was never issued.
    case unknown
    /// The credential was used before: the device is revoked, including all copies.
    case reused
    /// The device, its person or the environment's logins were revoked.
    case ended
    /// The identity provider issues no further tokens.
    case refusedByProvider = "provider-refused"
    /// The provider's token is no longer accepted, for example because the address is not verified.
    case tokenRefused = "token-refused"

    var detail: String {
        switch self {
        case .unknown: "The credential does not exist or has expired."
        case .reused: "The credential was used before; the device is revoked until its person logs in again."
        case .ended: "The device or its person was revoked."
        case .refusedByProvider: "The organisation's identity provider requires another login."
        case .tokenRefused: "The token of the organisation's identity provider is no longer accepted."
        }
    }
}

/// What a device's credential is worth. A pure function of what is stored of the device.
enum DeviceRule {
    /// What is stored of a device that was found by its name.
    struct Stored<Secret: Equatable & Sendable>: Equatable, Sendable {
        /// The newest secret that was handed out; `nil` once the device is shut out.
        var newest: Secret?
        /// The one it was handed out for. It is taken until the newest is used: the answer may have been lost.
        var former: Secret?
        /// Whether its person is still bound to the account of the device's login, at the environment's provider.
        var isPersons = true
        /// How long another renewal of the device's token may still take.
        var busySeconds = 0.0
    }

    enum Judgement: Equatable, Sendable {
        case renew
        case busy(seconds: Int)
        /// It was spent and its successor used: somebody has a copy.
        case reused
        /// The device is shut out, or its person is.
        case ended
    }

    static func judge<Secret>(_ stored: Stored<Secret>, secret: Secret) -> Judgement {
        guard let newest = stored.newest, stored.isPersons else { return .ended }
        guard secret == newest || secret == stored.former else { return .reused }
        guard stored.busySeconds <= 0 else { return .busy(seconds: Int(stored.busySeconds.rounded(.up))) }
        return .renew
    }
}

/// Why a device needs its person's login. For programs; the problem's detail says it to people.
enum LoginReason: String, Sendable {
    /// There is no such credential: it was not used for long, or never was one.
    case unknown
    /// It was used before: the device is shut out, and whoever has the copy too.
    case reused
    /// The device, its person or the environment's logins were revoked.
    case ended
    /// The identity provider gives no further tokens.
    case refusedByProvider = "provider-refused"
    /// What it gives is not taken any more, for example because nobody vouches for the address.
    case tokenRefused = "token-refused"

    var detail: String {
        switch self {
        case .unknown: "The credential is not known, or no longer."
        case .reused: "The credential was used before; the device is shut out until its person logs in again."
        case .ended: "The device, or its person, was shut out."
        case .refusedByProvider: "The organisation's identity provider asks for another login."
        case .tokenRefused: "The token of the organisation's identity provider is not taken any more."
        }
    }
}

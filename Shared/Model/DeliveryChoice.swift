import Essentials

/// Fields of a `DeliveryChoice` object: a person's choice of channels for notices outside their devices. In the
/// person's own realm, under the id of their own `Person`; at most one per person.
///
/// The person writes all fields except ``problem``. `GET /v1/deliveries` lists the available channels. Without a
/// channel or without the object, nothing is sent.
public struct DeliveryChoice: Codable, Equatable, Sendable {
    /// Maximum number of subscribed browsers of a person.
    public static let pushesCountMax = 8
    /// Maximum number of registered devices of a person.
    public static let devicesCountMax = 8
    /// Maximum number of excluded codes.
    public static let excludedCodesCountMax = 32
    /// Maximum length of an excluded code.
    private static let codeBytesMax = 64

    /// The `https` URL that is called with each notice, on a host that the environment allows.
    public var webhook: String?
    /// Whether notices are sent to the address that the person logs in with.
    public var email: Bool
    /// Subscribed browsers.
    public var pushes: [PushTarget]
    /// Phones and tablets that get native push messages. The server removes one when the credential of its login ends.
    public var devices: [DeviceTarget]
    /// The time of a daily e-mail with all notices, such as `07:30` in the person's time zone; `nil`: each notice is
    /// sent immediately.
    public var digestAt: String?
    /// The daily time in which nothing is sent, such as `22:00-06:30` in the person's time zone; notices are sent
    /// afterwards.
    public var quietHours: String?
    /// The person's time zone, a name of the IANA time zone database such as `Europe/Copenhagen`; `nil`: UTC.
    public var timeZone: String?
    /// The codes of notices that are not sent; they still appear in the realm. Unknown codes have no effect.
    public var excludedCodes: [Notice.Code]
    /// The reason why a delivery failed, as a sentence; written by the server, and cleared when the channel recovers.
    public var problem: String?

    /// Creates the fields of a choice.
    public init(
        webhook: String? = nil, email: Bool = false, pushes: [PushTarget] = [], devices: [DeviceTarget] = [],
        digestAt: String? = nil, quietHours: String? = nil, timeZone: String? = nil,
        excludedCodes: [Notice.Code] = [], problem: String? = nil
    ) {
        self.webhook = webhook
        self.email = email
        self.pushes = pushes
        self.devices = devices
        self.digestAt = digestAt
        self.quietHours = quietHours
        self.timeZone = timeZone
        self.excludedCodes = excludedCodes
        self.problem = problem
    }

    /// Reads the fields; `email` defaults to false, `pushes`, `devices` and `excludedCodes` to none.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        webhook = try container.decodeIfPresent(String.self, forKey: .webhook)
        email = try container.decodeIfPresent(Bool.self, forKey: .email) ?? false
        pushes = try container.decodeIfPresent([PushTarget].self, forKey: .pushes) ?? []
        devices = try container.decodeIfPresent([DeviceTarget].self, forKey: .devices) ?? []
        digestAt = try container.decodeIfPresent(String.self, forKey: .digestAt)
        quietHours = try container.decodeIfPresent(String.self, forKey: .quietHours)
        timeZone = try container.decodeIfPresent(String.self, forKey: .timeZone)
        excludedCodes = try container.decodeIfPresent([Notice.Code].self, forKey: .excludedCodes) ?? []
        problem = try container.decodeIfPresent(String.self, forKey: .problem)
    }
}

/// A browser's push subscription: the content of its `PushSubscription.toJSON()`.
public struct PushTarget: Codable, Equatable, Sendable {
    /// The URL that the browser's push service assigned.
    public var endpoint: String
    /// The browser's public key, an uncompressed point of P-256 in base64url.
    public var p256dh: String
    /// A secret shared with the browser: 16 bytes in base64url.
    public var auth: String

    /// Creates a push subscription.
    public init(endpoint: String, p256dh: String, auth: String) {
        self.endpoint = endpoint
        self.p256dh = p256dh
        self.auth = auth
    }

    /// Describes the first problem of the subscription as a sentence; `nil` if it is valid.
    var objection: String? {
        if SecureAddress(endpoint) == nil { return "'endpoint' must be a plain https address" }
        let point = Base64URL.bytes(p256dh.utf8)
        guard let point, point.count == 65, point.first == 4 else {
            return "'p256dh' must be an uncompressed point of P-256 in base64url"
        }
        return Base64URL.bytes(auth.utf8)?.count == 16 ? nil : "'auth' must be 16 bytes in base64url"
    }
}

/// A phone or tablet that gets native push messages.
///
/// It belongs to the credential of the device's login: when that is revoked, nothing more is sent to the device.
public struct DeviceTarget: Codable, Equatable, Sendable {
    /// The push service of a device's system.
    public enum Service: String, Codable, CaseIterable, Sendable {
        /// Apple Push Notification service.
        case apns
        /// Firebase Cloud Messaging.
        case fcm
    }

    /// The push service that issued the token.
    public var service: Service
    /// The token of the app's installation: for APNs the device token in lower-case hexadecimal digits, for FCM the
    /// registration token.
    public var token: String
    /// The id of the device's credential: `device_id` of its `token` event.
    public var device: String

    /// Creates a device's target.
    public init(service: Service, token: String, device: String) {
        self.service = service
        self.token = token
        self.device = device
    }

    /// Describes the first problem of the target as a sentence; `nil` if it is valid.
    var objection: String? {
        let isToken: Bool
        switch service {
        case .apns:
            isToken =
                Self.isHexadecimal(token, 2...Self.appleTokenBytesMax) && token.utf8.count.isMultiple(of: 2)
        case .fcm:
            isToken =
                1...Self.tokenBytesMax ~= token.utf8.count
                && token.utf8.allSatisfy { Base64URL.contains($0) || $0 == UInt8(ascii: ":") }
        }
        guard isToken else { return "'token' must be a token of \(service.rawValue)" }
        return Self.isHexadecimal(device, 64...64) ? nil : "'device' must be the device_id of the token event"
    }

    /// The vendors document no length. An APNs token has 64 digits today, an FCM token about 160 characters.
    private static let appleTokenBytesMax = 200
    private static let tokenBytesMax = 2_048

    private static func isHexadecimal(_ text: String, _ counts: ClosedRange<Int>) -> Bool {
        counts ~= text.utf8.count
            && text.utf8.allSatisfy { byte in
                UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte || UInt8(ascii: "a")...UInt8(ascii: "f") ~= byte
            }
    }
}

extension DeliveryChoice: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case webhook, email, pushes, devices, digestAt, quietHours, timeZone, excludedCodes, problem
    }

    /// The names of the fields that the person writes.
    package static let ownerNames = CodingKeys.allCases.filter { $0 != .problem }.map(\.stringValue)

    package var objection: String? {
        if let webhook, SecureAddress(webhook) == nil {
            return "'webhook' must be a plain https address of at most \(SecureAddress.bytesMax) bytes"
        }
        if pushes.count > Self.pushesCountMax { return "'pushes' must have at most \(Self.pushesCountMax) browsers" }
        if let problem = pushes.lazy.compactMap(\.objection).first { return "'pushes': \(problem)" }
        if Set(pushes.map(\.endpoint)).count < pushes.count { return "'pushes' must name each browser once" }
        if devices.count > Self.devicesCountMax { return "'devices' must have at most \(Self.devicesCountMax) devices" }
        if let problem = devices.lazy.compactMap(\.objection).first { return "'devices': \(problem)" }
        if Set(devices.map(\.token)).count < devices.count { return "'devices' must name each token once" }
        if let digestAt, MinuteOfDay(digestAt) == nil { return "'digestAt' must be a time such as 07:30" }
        if let quietHours, QuietHours(quietHours) == nil {
            return "'quietHours' must be two different times such as 22:00-06:30"
        }
        if let timeZone, !Self.isZoneName(timeZone) {
            return "'timeZone' must be a name of the IANA time zone database, such as Europe/Copenhagen"
        }
        if excludedCodes.count > Self.excludedCodesCountMax {
            return "'excludedCodes' must have at most \(Self.excludedCodesCountMax) codes"
        }
        if excludedCodes.contains(where: { $0.rawValue.utf8.count > Self.codeBytesMax }) {
            return "'excludedCodes' must be codes of at most \(Self.codeBytesMax) bytes, such as task-assigned"
        }
        return nil
    }

    /// Whether a text has the form of a zone's name; the set of zones depends on the database.
    private static func isZoneName(_ text: String) -> Bool {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        return text.utf8.count <= 64 && text.first?.isLetter == true
            && parts.allSatisfy { part in
                !part.isEmpty
                    && part.utf8.allSatisfy { byte in
                        Base64URL.contains(byte) || byte == UInt8(ascii: "+")
                    }
            }
    }

    /// The row of ``Kind/deliveryChoice``. It has no topic: keys of browsers' messages leave PostgreSQL only for their
    /// person.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user], ids: .natural)
}

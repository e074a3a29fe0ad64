import Essentials

/// Fields of a `DeliveryChoice` object: a person's choice of channels for notices outside their devices. In the
/// person's own realm, under the id of their own `Person`; at most one per person.
///
/// The person writes all fields except ``problem``. `GET /v1/deliveries` lists the available channels. Without a
/// channel or without the object, nothing is sent.
public struct DeliveryChoice: Codable, Equatable, Sendable {
    /// Maximum number of subscribed browsers of a person.
    public static let pushesCountMax = 8
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
        webhook: String? = nil, email: Bool = false, pushes: [PushTarget] = [], digestAt: String? = nil,
        quietHours: String? = nil, timeZone: String? = nil, excludedCodes: [Notice.Code] = [], problem: String? = nil
    ) {
        self.webhook = webhook
        self.email = email
        self.pushes = pushes
        self.digestAt = digestAt
        self.quietHours = quietHours
        self.timeZone = timeZone
        self.excludedCodes = excludedCodes
        self.problem = problem
    }

    /// Reads the fields; `email` defaults to false, `pushes` and `excludedCodes` to none.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        webhook = try container.decodeIfPresent(String.self, forKey: .webhook)
        email = try container.decodeIfPresent(Bool.self, forKey: .email) ?? false
        pushes = try container.decodeIfPresent([PushTarget].self, forKey: .pushes) ?? []
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

extension DeliveryChoice: KindFields {
    enum CodingKeys: String, CodingKey, CaseIterable {
        case webhook, email, pushes, digestAt, quietHours, timeZone, excludedCodes, problem
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

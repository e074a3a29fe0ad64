import Essentials

/// Fields of a `DeliveryChoice` object: how a person wants to be told of notices outside of their devices. In the
/// person's own realm, under the id of their own `Person`: there is one.
///
/// Its person writes all of it but ``problem``. What is offered says `GET /v1/deliveries`. Without any way, and without
/// the object, nothing is sent.
public struct DeliveryChoice: Codable, Equatable, Sendable {
    /// The browsers of a person that are told.
    public static let pushesCountMax = 8

    /// The address that is called with each notice: `https`, on a host that the environment names.
    public var webhook: String?
    /// Whether notices are sent to the address that the person logs in with.
    public var email: Bool
    /// Browsers that are told.
    public var pushes: [PushTarget]
    /// When a day's e-mail is sent with all notices in it, `07:30` of the person's clock; `nil`: each one at once.
    public var digestAt: String?
    /// When nothing is sent, `22:00-06:30` of the person's clock; what would be is sent after.
    public var quietHours: String?
    /// The person's clock: a name of the IANA time zone database, such as `Europe/Copenhagen`; `nil`: UTC.
    public var timeZone: String?
    /// Why something was not delivered, as a sentence; written by the server, and gone when that way works again.
    public var problem: String?

    /// A choice.
    public init(
        webhook: String? = nil, email: Bool = false, pushes: [PushTarget] = [], digestAt: String? = nil,
        quietHours: String? = nil, timeZone: String? = nil, problem: String? = nil
    ) {
        self.webhook = webhook
        self.email = email
        self.pushes = pushes
        self.digestAt = digestAt
        self.quietHours = quietHours
        self.timeZone = timeZone
        self.problem = problem
    }

    /// Reads the fields; without `email` there is none, and without `pushes` no browser.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        webhook = try container.decodeIfPresent(String.self, forKey: .webhook)
        email = try container.decodeIfPresent(Bool.self, forKey: .email) ?? false
        pushes = try container.decodeIfPresent([PushTarget].self, forKey: .pushes) ?? []
        digestAt = try container.decodeIfPresent(String.self, forKey: .digestAt)
        quietHours = try container.decodeIfPresent(String.self, forKey: .quietHours)
        timeZone = try container.decodeIfPresent(String.self, forKey: .timeZone)
        problem = try container.decodeIfPresent(String.self, forKey: .problem)
    }
}

/// Where and for whom a browser takes messages: what its `PushSubscription.toJSON()` has.
public struct PushTarget: Codable, Equatable, Sendable {
    /// The address that the browser's push service gave it.
    public var endpoint: String
    /// The browser's public key, an uncompressed point of P-256 in base64url.
    public var p256dh: String
    /// 16 bytes in base64url, shared with the browser alone.
    public var auth: String

    /// A browser.
    public init(endpoint: String, p256dh: String, auth: String) {
        self.endpoint = endpoint
        self.p256dh = p256dh
        self.auth = auth
    }

    /// What is wrong with it, as a sentence for whoever writes it.
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
        case webhook, email, pushes, digestAt, quietHours, timeZone, problem
    }

    /// The names of the fields that its person writes.
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
        return nil
    }

    /// Whether a text can be the name of a zone: which there are changes with the database.
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

    /// The row of ``Kind/deliveryChoice``. It is on no topic: what opens a browser's messages does not leave PostgreSQL
    /// but for its person.
    package static let row = KindRow(Self.self, CodingKeys.self, in: [.user], ids: .natural)
}

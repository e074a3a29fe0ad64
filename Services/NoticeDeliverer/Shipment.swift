import Essentials
import FoundationEssentials
import Model

/// A notice waiting for delivery to one target: a row of `delivery.shipment`.
struct ShipmentRow: Equatable, Sendable {
    let notice: UUID
    let target: UUID
    let channel: Channel
    /// Whether it is part of an e-mail with all notices that are due at the same time.
    var isDigest = false
    /// The planned time.
    var dueAt: Timestamp
    /// The time of the next attempt.
    var nextAt: Timestamp
    var attempts = 0
    var lastError: String?
    /// The digest of its first attempt. Notices that arrive later are another e-mail.
    var message: UUID?
}

/// One message: a notice, or all notices of a digest.
struct Shipment: Equatable, Sendable {
    /// A notice with its id.
    struct Item: Equatable, Sendable {
        let id: UUID
        let notice: Notice
    }

    /// The same for each attempt. It becomes `webhook-id`, `Message-ID` and `Topic`.
    let id: UUID
    let target: DeliveryTarget
    /// Sorted by time.
    let items: [Item]
    let isDigest: Bool
    /// The time after which it is not sent.
    let expiresAt: Timestamp

    /// Returns the id of a notice's shipment to a target.
    ///
    /// - Parameter person: Their e-mail address and environment.
    static func id(of notice: UUID, to target: UUID, person: String) -> UUID {
        UUID(name: "notice \(notice) \(target) \(person)", in: .deliveries)
    }

    /// Returns the id of a digest. It depends on the notices that wait at its first attempt, so that an e-mail with
    /// others has another id, and no receiver takes it for a duplicate.
    static func id(ofDigestAt time: Timestamp, with notices: [UUID], to target: UUID, person: String) -> UUID {
        let notices = notices.map(\.text).sorted().joined(separator: " ")
        return UUID(name: "digest \(time) \(target) \(person) \(notices)", in: .deliveries)
    }
}

/// The outcome of a shipment.
enum Outcome: Equatable, Sendable {
    /// The receiver has it.
    case delivered
    /// It failed, or the outcome is unknown.
    ///
    /// - Parameter after: The delay that the receiver requests.
    case retry(reason: String, after: Duration?)
    /// The receiver rejects it permanently.
    case refused(reason: String)
    /// The receiver no longer exists.
    case expired(reason: String)
}

/// A call: one person's shipments to send now, each independent of the others.
struct DeliveryCall: Sendable {
    let shipments: [Shipment]
}

/// The outcomes of a call.
struct DeliveryCallResult: Sendable {
    let outcomes: [(shipment: Shipment, outcome: Outcome)]
}

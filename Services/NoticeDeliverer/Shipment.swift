import Essentials
import FoundationEssentials
import Model

/// A notice that waits for its way to one target: a row of `delivery.shipment`.
struct WaitingRow: Equatable, Sendable {
    let notice: UUID
    let target: UUID
    let way: Way
    /// It goes into one e-mail with all that is due at the same time.
    var isDigest = false
    /// When it was planned for.
    var dueAt: Timestamp
    /// When it is tried next.
    var nextAt: Timestamp
    var attempts = 0
    var lastError: String?
    /// The digest that it goes with, since that was tried first: what comes later is another e-mail.
    var message: UUID?
}

/// What is sent at once: a notice, or all that are in one e-mail.
struct Shipment: Equatable, Sendable {
    /// A notice with its id.
    struct Item: Equatable, Sendable {
        let id: UUID
        let notice: Notice
    }

    /// The same however often it is sent: `webhook-id`, `Message-ID` and `Topic` are made of it.
    let id: UUID
    let target: Target
    /// Sorted by time.
    let items: [Item]
    let isDigest: Bool
    /// From then on it is not worth sending.
    let expiresAt: Timestamp

    /// The id of a notice on its way to a target.
    ///
    /// - Parameter person: Their e-mail address and environment.
    static func id(of notice: UUID, to target: UUID, person: String) -> UUID {
        UUID(name: "notice \(notice) \(target) \(person)", in: .deliveries)
    }

    /// The id of an e-mail with what is due at a time. It is that of the notices that wait for it when it is tried
    /// first: another part, or what comes late, is another e-mail, and not taken for one that was delivered.
    static func id(ofDigestAt time: Timestamp, with notices: [UUID], to target: UUID, person: String) -> UUID {
        let notices = notices.map(\.text).sorted().joined(separator: " ")
        return UUID(name: "digest \(time) \(target) \(person) \(notices)", in: .deliveries)
    }
}

/// What came of a shipment.
enum Outcome: Equatable, Sendable {
    /// The receiver has it.
    case delivered
    /// Not now, or nobody knows.
    ///
    /// - Parameter after: How long the receiver asks to be left alone.
    case retry(reason: String, after: Duration?)
    /// It would be refused again.
    case refused(reason: String)
    /// The receiver is not there any more, and will not be.
    case gone(reason: String)
}

/// A call: what is sent to one person's targets now, each on its own.
struct Dispatch: Sendable {
    let shipments: [Shipment]
}

/// Its answer.
struct DispatchAnswer: Sendable {
    let outcomes: [(shipment: Shipment, outcome: Outcome)]
}

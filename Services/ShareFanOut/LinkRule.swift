import Model

/// Limits of sharing.
struct ShareLimits: Equatable, Sendable {
    /// Limit on the people with whom one item is shared.
    var linkCountMax = 1_000
    /// Limit on the shares of one person, as owner and as recipient. The gateway has the same limit.
    var shareCountMax = 1_000
}

/// Decides about a link, which is a person's `SharedItem`, and about the recipient's copy.
enum LinkRule {
    /// The facts about an existing link that the decision depends on.
    struct Facts: Equatable, Sendable {
        /// The position of the person's last write of the link.
        var writtenAt: Int64
        /// The link's item.
        var item = Item.present
        /// The link's recipient.
        var recipient = Recipient.valid
        /// Number of older links of the item.
        var olderCount = 0
        /// The position of the recipient's last removal of the copy; 0: never.
        var removedAt: Int64 = 0
        /// The position of the last end of the share by either person; 0: never.
        var endedAt: Int64 = 0
        /// The person who ended the share last.
        var ender = Ender.unknown
        /// Whether the share exists or can be created.
        var capacity = Capacity.existing
    }

    /// The person who ended a share; unknown if an integration did.
    enum Ender: Equatable, Sendable, CaseIterable { case owner, recipient, unknown }

    /// The state of an item.
    enum Item: Equatable, Sendable {
        /// It does not exist, without a tombstone.
        case absent
        /// It was deleted at this position.
        case deleted(at: Int64)
        case present
    }

    /// The validity of a recipient.
    enum Recipient: Equatable, Sendable, CaseIterable { case valid, unknown, oneself }

    /// Whether two people have a share, or can get one.
    enum Capacity: Equatable, Sendable, CaseIterable { case existing, available, ownerFull, recipientFull }

    /// The reason why an existing item has no copy.
    enum Rejection: Equatable, Sendable, CaseIterable {
        case unknownRecipient, ownRecipient, tooManyLinks, ownerFull, recipientFull

        /// Whether it can end without a change of the link or its item.
        var isTemporary: Bool {
            switch self {
            case .unknownRecipient, .ownRecipient: false
            case .tooManyLinks, .ownerFull, .recipientFull: true
            }
        }

        /// Returns the text for the link's person.
        func text(_ limits: ShareLimits) -> String {
            switch self {
            case .unknownRecipient: "no person with this id has a realm"
            case .ownRecipient: "the recipient already owns it"
            case .tooManyLinks: "it is already shared with \(limits.linkCountMax) people, the maximum"
            case .ownerFull: "you already have \(limits.shareCountMax) shares, the maximum"
            case .recipientFull: "the recipient already has \(limits.shareCountMax) shares, the maximum"
            }
        }
    }

    enum Verdict: Equatable, Sendable {
        /// No copy; the link was deleted.
        case deleted
        /// No copy, and the link is deleted: the recipient, the end of the share, or the item's deletion ended it.
        case ended(EndReason)
        /// No copy yet: the item has not arrived.
        case waiting
        /// No copy, and the link has the reason.
        case rejected(Rejection)
        /// A copy, in a share.
        case shared
    }

    /// - Parameter facts: `nil`: the link does not exist.
    static func decide(_ facts: Facts?, _ limits: ShareLimits) -> Verdict {
        guard let facts else { return .deleted }
        guard facts.writtenAt > facts.endedAt else {
            switch facts.ender {
            case .owner: return .ended(.cancelled)
            case .recipient: return .ended(.removed)
            case .unknown: return .ended(.shareEnded)
            }
        }
        guard facts.writtenAt > facts.removedAt else { return .ended(.removed) }
        // An end by a person has priority: the link is not restored with the item.
        if case .deleted(let position) = facts.item, facts.writtenAt < position { return .ended(.itemDeleted) }
        switch facts.recipient {
        case .unknown: return .rejected(.unknownRecipient)
        case .oneself: return .rejected(.ownRecipient)
        case .valid: break
        }
        guard facts.olderCount < limits.linkCountMax else { return .rejected(.tooManyLinks) }
        switch (facts.item, facts.capacity) {
        case (.absent, _), (.deleted, _): return .waiting
        case (.present, .existing), (.present, .available): return .shared
        case (.present, .ownerFull): return .rejected(.ownerFull)
        case (.present, .recipientFull): return .rejected(.recipientFull)
        }
    }
}

/// How much is shared at most.
struct ShareBounds: Equatable, Sendable {
    /// People with whom one item is shared.
    var linkCountMax = 1_000
    /// Shares of one person, of their own items and of others', as many as the gateway opens.
    var shareCountMax = 1_000
}

/// What becomes of a link, which is a person's `SharedItem`, and of the copy that its recipient has by it.
enum LinkRule {
    /// All that decides on a link that is there.
    struct Facts: Equatable, Sendable {
        /// The position at which its person put it last.
        var madeAt: Int64
        /// The item that it names.
        var item = Item.there
        /// Whom it names.
        var recipient = Recipient.known
        /// How many older links its item has.
        var olderCount = 0
        /// The position at which the recipient removed the copy last; 0: never.
        var removedAt: Int64 = 0
        /// The position at which one of the two ended the share last; 0: never.
        var endedAt: Int64 = 0
        /// Whether there is a share, or may be one.
        var room = Room.made
    }

    /// Whether there is an item.
    enum Item: Equatable, Sendable {
        /// Not yet, as far as is known.
        case absent
        /// Not any more, since this position.
        case deleted(at: Int64)
        case there
    }

    /// Who is to have the copy.
    enum Recipient: Equatable, Sendable, CaseIterable { case known, unknown, oneself }

    /// Whether two people have a share, or both have room for one.
    enum Room: Equatable, Sendable, CaseIterable { case made, free, ownerFull, recipientFull }

    /// Why there is no copy although there is an item.
    enum Refusal: Equatable, Sendable, CaseIterable {
        case unknownRecipient, ownRecipient, manyLinks, ownerFull, recipientFull

        /// Whether it may be over some day without a change of the link or of its item.
        var mayPass: Bool {
            switch self {
            case .unknownRecipient, .ownRecipient: false
            case .manyLinks, .ownerFull, .recipientFull: true
            }
        }

        /// What the link's person is told.
        func text(_ bounds: ShareBounds) -> String {
            switch self {
            case .unknownRecipient: "nobody with this id has a realm"
            case .ownRecipient: "it is the recipient's own"
            case .manyLinks: "it is shared with \(bounds.linkCountMax) people already"
            case .ownerFull: "you have \(bounds.shareCountMax) shares already"
            case .recipientFull: "the recipient has \(bounds.shareCountMax) shares already"
            }
        }
    }

    enum Verdict: Equatable, Sendable {
        /// No copy. The link is no more.
        case gone
        /// No copy, and no link: it was ended by its recipient, with its share, or with its item.
        case ended
        /// No copy yet: the item has not come.
        case waiting
        /// No copy, and the link says why.
        case refused(Refusal)
        /// A copy, in a share.
        case shared
    }

    /// - Parameter facts: `nil`: the link is not there, or not any more.
    static func decide(_ facts: Facts?, _ bounds: ShareBounds) -> Verdict {
        guard let facts else { return .gone }
        guard facts.madeAt > max(facts.removedAt, facts.endedAt) else { return .ended }
        if case .deleted(let position) = facts.item, facts.madeAt < position { return .ended }
        switch facts.recipient {
        case .unknown: return .refused(.unknownRecipient)
        case .oneself: return .refused(.ownRecipient)
        case .known: break
        }
        guard facts.olderCount < bounds.linkCountMax else { return .refused(.manyLinks) }
        switch (facts.item, facts.room) {
        case (.absent, _), (.deleted, _): return .waiting
        case (.there, .made), (.there, .free): return .shared
        case (.there, .ownerFull): return .refused(.ownerFull)
        case (.there, .recipientFull): return .refused(.recipientFull)
        }
    }
}

import Model
import TestSupport
import Testing

@testable import ShareFanOut

/// The rule about one link, as a table.
@Suite(.ownThreads) struct LinkRuleTests {
    private typealias Facts = LinkRule.Facts

    private static let limits = ShareLimits(linkCountMax: 3, shareCountMax: 2)

    private static let rows: [(name: String, facts: Facts?, verdict: LinkRule.Verdict)] = [
        ("no link", nil, .deleted),
        ("item and share exist", Facts(writtenAt: 5), .shared),
        ("the first share of the pair", Facts(writtenAt: 5, capacity: .available), .shared),
        ("the copy was removed before", Facts(writtenAt: 5, removedAt: 4), .shared),
        ("the copy was removed since", Facts(writtenAt: 5, removedAt: 6), .ended(.removed)),
        ("the share was ended before", Facts(writtenAt: 5, endedAt: 4), .shared),
        ("the share was ended since", Facts(writtenAt: 5, endedAt: 6), .ended(.shareEnded)),
        ("its owner ended the share", Facts(writtenAt: 5, endedAt: 6, ender: .owner), .ended(.cancelled)),
        ("its recipient ended the share", Facts(writtenAt: 5, endedAt: 6, ender: .recipient), .ended(.removed)),
        ("ended, and recreated by another link", Facts(writtenAt: 5, endedAt: 6), .ended(.shareEnded)),
        ("the item has not arrived", Facts(writtenAt: 5, item: .absent), .waiting),
        ("the item was deleted since", Facts(writtenAt: 5, item: .deleted(at: 6)), .ended(.itemDeleted)),
        ("the item was deleted before", Facts(writtenAt: 5, item: .deleted(at: 4)), .waiting),
        ("unknown recipient", Facts(writtenAt: 5, recipient: .unknown), .rejected(.unknownRecipient)),
        ("the owner as recipient", Facts(writtenAt: 5, recipient: .oneself), .rejected(.ownRecipient)),
        ("the last link within the limit", Facts(writtenAt: 5, olderCount: 2), .shared),
        ("one link above the limit", Facts(writtenAt: 5, olderCount: 3), .rejected(.tooManyLinks)),
        ("the owner is at the limit", Facts(writtenAt: 5, capacity: .ownerFull), .rejected(.ownerFull)),
        ("the recipient is at the limit", Facts(writtenAt: 5, capacity: .recipientFull), .rejected(.recipientFull)),
        // An end has priority over a missing item and over rejections.
        ("removed, of an unknown recipient", Facts(writtenAt: 5, recipient: .unknown, removedAt: 6), .ended(.removed)),
        ("ended, at the limit", Facts(writtenAt: 5, endedAt: 6, capacity: .ownerFull), .ended(.shareEnded)),
        // An end by a person has priority over the item's deletion: the link is not restored with the item.
        ("removed, and the item deleted", Facts(writtenAt: 5, item: .deleted(at: 7), removedAt: 6), .ended(.removed)),
        ("ended, and the item deleted", Facts(writtenAt: 5, item: .deleted(at: 7), endedAt: 6), .ended(.shareEnded)),
        (
            "unknown recipient, without an item", Facts(writtenAt: 5, item: .absent, recipient: .unknown),
            .rejected(.unknownRecipient)
        ),
        ("without an item, at the limit", Facts(writtenAt: 5, item: .absent, capacity: .ownerFull), .waiting),
    ]

    @Test func linkVerdicts() {
        for row in Self.rows { #expect(LinkRule.decide(row.facts, Self.limits) == row.verdict, "\(row.name)") }
    }

    /// Time can free capacity, but does not make a recipient valid.
    @Test func temporaryRejectionsAreRetried() {
        #expect(LinkRule.Rejection.allCases.filter(\.isTemporary) == [.tooManyLinks, .ownerFull, .recipientFull])
        let texts = LinkRule.Rejection.allCases.map { $0.text(Self.limits) }
        #expect(Set(texts).count == texts.count && texts[2].contains("3 people") && texts[3].contains("2 shares"))
    }
}

import Testing

@testable import ShareFanOut

/// The rule about one link, as a table.
@Suite struct LinkRuleTests {
    private typealias Facts = LinkRule.Facts

    private static let bounds = ShareBounds(linkCountMax: 3, shareCountMax: 2)

    private static let rows: [(what: String, facts: Facts?, verdict: LinkRule.Verdict)] = [
        ("no link", nil, .gone),
        ("all is there", Facts(madeAt: 5), .shared),
        ("the first between the two", Facts(madeAt: 5, room: .free), .shared),
        ("the copy was removed before", Facts(madeAt: 5, removedAt: 4), .shared),
        ("the copy was removed since", Facts(madeAt: 5, removedAt: 6), .ended),
        ("the share was ended before", Facts(madeAt: 5, endedAt: 4), .shared),
        ("the share was ended since", Facts(madeAt: 5, endedAt: 6), .ended),
        ("ended, and made again by another link", Facts(madeAt: 5, endedAt: 6, room: .made), .ended),
        ("the item has not come", Facts(madeAt: 5, item: .absent), .waiting),
        ("the item was deleted since", Facts(madeAt: 5, item: .deleted(at: 6)), .ended),
        ("the item was deleted before", Facts(madeAt: 5, item: .deleted(at: 4)), .waiting),
        ("nobody", Facts(madeAt: 5, recipient: .unknown), .refused(.unknownRecipient)),
        ("oneself", Facts(madeAt: 5, recipient: .oneself), .refused(.ownRecipient)),
        ("the last that may be", Facts(madeAt: 5, olderCount: 2), .shared),
        ("one too many", Facts(madeAt: 5, olderCount: 3), .refused(.manyLinks)),
        ("the owner has no room", Facts(madeAt: 5, room: .ownerFull), .refused(.ownerFull)),
        ("the recipient has no room", Facts(madeAt: 5, room: .recipientFull), .refused(.recipientFull)),
        // What ends a link counts before what it waits for and what is wrong with it.
        ("removed, of nobody", Facts(madeAt: 5, recipient: .unknown, removedAt: 6), .ended),
        ("ended, without room", Facts(madeAt: 5, endedAt: 6, room: .ownerFull), .ended),
        ("nobody, without an item", Facts(madeAt: 5, item: .absent, recipient: .unknown), .refused(.unknownRecipient)),
        ("without an item and without room", Facts(madeAt: 5, item: .absent, room: .ownerFull), .waiting),
    ]

    @Test func whatBecomesOfALink() {
        for row in Self.rows { #expect(LinkRule.decide(row.facts, Self.bounds) == row.verdict, "\(row.what)") }
    }

    /// Time alone gives room, but makes nobody of somebody else.
    @Test func whatMayPassComesAgain() {
        #expect(LinkRule.Refusal.allCases.filter(\.mayPass) == [.manyLinks, .ownerFull, .recipientFull])
        let texts = LinkRule.Refusal.allCases.map { $0.text(Self.bounds) }
        #expect(Set(texts).count == texts.count && texts[2].contains("3 people") && texts[3].contains("2 shares"))
    }
}

import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import KeyedWorker
@testable import ShareFanOut

/// Repeats, lateness, races, bounds, and what changes its mind.
@Suite(.ownThreads) struct SharingTests {
    private typealias Item = Sharing.Item

    /// One note of the first person, shared with the second.
    private func shared(_ item: Item) throws -> Sharing {
        var sharing = try Sharing()
        try sharing.write(item, "n", of: sharing.people[0])
        try sharing.share(item, of: sharing.people[0], with: sharing.people[1].id)
        try sharing.settle()
        return sharing
    }

    @Test func aLinkWaitsForItsItem() throws {
        var sharing = try Sharing()
        let (ana, ben, item) = (sharing.people[0], sharing.people[1], Item(kind: .note, id: UUID()))
        try sharing.share(item, of: ana, with: ben.id)
        try sharing.settle()
        #expect(try sharing.shares(ben) == 0 && sharing.parked.isEmpty && !sharing.links(ana).isEmpty)
        try sharing.write(item, "n", of: ana)
        try sharing.settle()
        #expect(try sharing.copies(ana, ben).count == 1)
    }

    /// All that is published again changes nothing; and what was lost comes back by it.
    @Test func whatIsPublishedAgainChangesNothingAndRepairs() throws {
        let item = Item(kind: .note, id: UUID())
        var sharing = try shared(item)
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let other = Item(kind: .appointment, id: UUID())
        try sharing.write(other, "a", of: ana)
        try sharing.share(other, of: ana, with: ben.id)
        try sharing.share(other, of: ana, with: sharing.people[2].id)
        try sharing.settle()
        try sharing.end(ana, sharing.people[2])
        try sharing.settle()
        for _ in 0..<2 {
            let before = try sharing.position()
            try sharing.settle(try sharing.collect(all: true))
            #expect(try sharing.position() == before)
        }
        let path = Sharing.path(ana, ben)
        let whole = try sharing.stored(path)
        // As if a hand had slipped: no edits of anybody.
        let share = Share.id(of: ana.id, with: ben.id)
        var batch = WriteBatch(environment: sharing.acme.id)
        let realms = try [path, ben.path].map { try sharing.acme.realm($0) }
        batch.delete(ObjectKey(realm: realms[0], kind: .note, id: item.id), decision: 0)
        batch.delete(ObjectKey(realm: realms[1], kind: .share, id: share), decision: 0)
        batch.put(ObjectKey(realm: realms[0], kind: .note, id: other.id), try .init("{\"title\":\"x\"}"), decision: 0)
        _ = try batch.commit(on: &sharing.acme.connection)
        try sharing.settle(try sharing.collect(all: true))
        #expect(try sharing.stored(path) == whole && sharing.shares(ben) == 1)
    }

    /// Of two who decided from the same, one misses, decides again, and has nothing to do.
    @Test func whoWasSlowerDecidesAgain() throws {
        var sharing = try Sharing()
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let items = (0..<3).map { _ in Item(kind: .note, id: UUID()) }
        for item in items {
            try sharing.write(item, "n", of: ana)
            try sharing.share(item, of: ana, with: ben.id)
        }
        let events = try sharing.collect()
        var (one, two) = (ShareHandler(), ShareHandler())
        let first = try sharing.decide(events, by: &one)
        let second = try sharing.decide(events, by: &two)
        // Meanwhile an item changes: whoever read it before writes nothing of it.
        try sharing.write(items[0], "changed", of: ana)
        var again = try sharing.commit(first.batch, events, first.nexts)
        #expect(again.contains { $0.subject.id == items[0].id || $0.subject.kind == .sharedItem })
        let before = try sharing.position()
        again += try sharing.commit(second.batch, events, second.nexts)
        #expect(try sharing.position() - before <= 6)
        try sharing.settle(again)
        let titles = try sharing.copies(ana, ben).values.sorted()
        #expect(titles == [Sharing.json(.note, "changed"), Sharing.json(.note, "n"), Sharing.json(.note, "n")])
        #expect(try sharing.shares(ben) == 1)
    }

    /// Who heard of a new link late writes nothing of the item as it was, whether the copy was made, changed or removed
    /// since.
    @Test(arguments: [0, 1, 2]) func anOldDecisionWritesNothing(what: Int) throws {
        var sharing = try shared(Item(kind: .note, id: UUID()))
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let item = Item(kind: .note, id: UUID())
        try sharing.write(item, "old", of: ana)
        try sharing.share(item, of: ana, with: ben.id)
        let events = try sharing.collect()
        let link = events.filter { $0.subject.kind == .sharedItem }
        var slow = ShareHandler()
        let (batch, nexts) = try sharing.decide(link, by: &slow)
        switch what {
        case 0: try sharing.write(item, "new", of: ana)
        case 1: try sharing.delete(.note, item.id, in: ana.path)
        default: break
        }
        try sharing.settle(events)
        if what == 2 { try sharing.remove(item, of: ana, by: ben) }
        let before = try sharing.position()
        #expect(try sharing.commit(batch, link, nexts).count == 1)
        #expect(try sharing.position() - before <= 1)
        let copy = try sharing.copies(ana, ben)["Note/\(item.id.text)"]
        #expect(copy == (what == 0 ? Sharing.json(.note, "new") : nil))
    }

    /// A removal that comes between the decision and its commit is not undone.
    @Test(arguments: [0, 1, 2, 3]) func whatEndsMeanwhileStaysEnded(what: Int) throws {
        let item = Item(kind: .note, id: UUID())
        var sharing = try shared(item)
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        try sharing.write(item, "changed", of: ana)
        let events = try sharing.collect()
        var handler = ShareHandler()
        let (batch, nexts) = try sharing.decide(events, by: &handler)
        switch what {
        case 0: try sharing.remove(item, of: ana, by: ben)
        case 1: try sharing.end(ana, ben)
        case 2: try sharing.unshare(item, of: ana, with: ben.id)
        default: try sharing.delete(.note, item.id, in: ana.path)
        }
        let again = try sharing.commit(batch, events, nexts)
        #expect(again.count == 1)
        try sharing.settle(again)
        #expect(try sharing.copies(ana, ben).isEmpty && sharing.links(ana).isEmpty)
        #expect(try sharing.shares(ben) == (what == 1 ? 0 : 1))
    }

    /// What is shared after an end is, and what was shared before is not, in whatever order that is heard of.
    @Test(arguments: [false, true]) func whatIsSharedAfterAnEndCounts(isReversed: Bool) throws {
        var sharing = try shared(Item(kind: .note, id: UUID()))
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let other = Item(kind: .note, id: UUID())
        try sharing.write(other, "other", of: ana)
        try sharing.end(ana, ben)
        try sharing.share(other, of: ana, with: ben.id)
        let events = try sharing.collect()
        for event in isReversed ? events.reversed() : events { try sharing.settle([event]) }
        #expect(try sharing.copies(ana, ben) == ["Note/\(other.id.text)": Sharing.json(.note, "other")])
        #expect(try sharing.links(ana).count == 1 && sharing.shares(ana) == 1 && sharing.shares(ben) == 1)
    }

    /// The end of a share is told by no event of its own when the share was made again before the relay came to it.
    @Test func anEndThatNobodyHeardOfCounts() throws {
        var sharing = try shared(Item(kind: .note, id: UUID()))
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let other = Item(kind: .note, id: UUID())
        try sharing.write(other, "other", of: ana)
        try sharing.share(other, of: ana, with: ben.id)
        var events = try sharing.collect()
        try sharing.end(ana, ben)
        try sharing.share(other, of: ana, with: ben.id)
        // First what was left of the old share goes, then the new one is made.
        var handler = ShareHandler()
        for _ in 0..<2 {
            let (batch, nexts) = try sharing.decide(events, by: &handler)
            events = try sharing.commit(batch, events, nexts)
        }
        #expect(events.allSatisfy { $0.subject.kind == .note })
        #expect(try sharing.copies(ana, ben).count == 2 && sharing.links(ana).count == 2)
        try sharing.settle()
        #expect(try sharing.copies(ana, ben) == ["Note/\(other.id.text)": Sharing.json(.note, "other")])
        #expect(try sharing.links(ana).count == 1 && sharing.shares(ana) == 1 && sharing.shares(ben) == 1)
    }

    /// A share that is made again at once, with the very same fields: the devices had closed its realm, and hear of it.
    @Test func aShareThatIsMadeAgainIsHeardOf() throws {
        var sharing = try shared(Item(kind: .note, id: UUID()))
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let other = Item(kind: .note, id: UUID())
        try sharing.write(other, "other", of: ana)
        try sharing.end(ana, ben)
        try sharing.share(other, of: ana, with: ben.id)
        try sharing.settle()
        #expect(try sharing.copies(ana, ben) == ["Note/\(other.id.text)": Sharing.json(.note, "other")])
        #expect(try sharing.isHeardOf(ana, ben))
    }

    /// More links than one batch of an ended share reads.
    @Test func aShareOfManyItemsEnds() throws {
        var sharing = try shared(Item(kind: .note, id: UUID()))
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let items = (0..<450).map { _ in Item(kind: .note, id: UUID()) }
        for item in items {
            try sharing.write(item, "n", of: ana)
            try sharing.share(item, of: ana, with: ben.id)
        }
        try sharing.settle()
        #expect(try sharing.copies(ana, ben).count == 451)
        try sharing.end(ana, ben)
        try sharing.settle()
        #expect(try sharing.stored(Sharing.path(ana, ben)).isEmpty && sharing.links(ana).isEmpty)
    }

    /// The oldest links count; a further one says so until there is room.
    @Test func anItemIsSharedWithSoMany() throws {
        var sharing = try Sharing(people: (0..<5).map { "person\($0)" }, ShareBounds(linkCountMax: 2))
        let (people, item) = (sharing.people, Item(kind: .note, id: UUID()))
        try sharing.write(item, "n", of: people[0])
        for person in people[1...] { try sharing.share(item, of: people[0], with: person.id) }
        try sharing.settle()
        func counts() throws -> [Int] { try people[1...].map { try sharing.copies(people[0], $0).count } }
        #expect(try counts() == [1, 1, 0, 0] && sharing.parked.count == 2)
        #expect(try sharing.links(people[0]).values.filter { $0.contains("2 people already") }.count == 2)
        let before = try sharing.position()
        try sharing.settle(try sharing.collect(all: true))
        try sharing.retryParked()
        #expect(try sharing.position() == before && sharing.parked.count == 2)
        try sharing.unshare(item, of: people[0], with: people[1].id)
        try sharing.settle()
        try sharing.retryParked()
        #expect(try counts() == [0, 1, 1, 0] && sharing.parked.count == 1)
        #expect(try sharing.links(people[0]).values.filter { $0.contains("2 people already") }.count == 1)
        // The item goes: then nobody waits.
        try sharing.delete(.note, item.id, in: people[0].path)
        try sharing.settle()
        try sharing.retryParked()
        #expect(try counts() == [0, 0, 0, 0] && sharing.parked.isEmpty && sharing.links(people[0]).isEmpty)
    }

    /// A person has so many shares, as an owner and as a recipient, also when they come at once.
    @Test(arguments: [true, false]) func aPersonHasSoManyShares(isOwner: Bool) throws {
        var sharing = try Sharing(people: (0..<5).map { "person\($0)" }, ShareBounds(shareCountMax: 2))
        let (people, one) = (sharing.people, sharing.people[0])
        let items = people.map { _ in Item(kind: .note, id: UUID()) }
        for (item, person) in zip(items, people).dropFirst() {
            let (owner, recipient) = isOwner ? (one, person) : (person, one)
            try sharing.write(item, "n", of: owner)
            try sharing.share(item, of: owner, with: recipient.id)
        }
        try sharing.settle()
        #expect(try sharing.shares(one) == 2 && sharing.parked.count == 2)
        func refused() throws -> Int {
            var count = 0
            for person in people { count += try sharing.links(person).values.count { $0.contains("2 shares already") } }
            return count
        }
        #expect(try refused() == 2)
        let made = try #require(people.dropFirst().first { (try? sharing.shares($0)) == 1 })
        if isOwner { try sharing.end(one, made) } else { try sharing.end(made, one) }
        try sharing.settle()
        try sharing.retryParked()
        #expect(try sharing.shares(one) == 2 && sharing.shares(made) == 0 && sharing.parked.count == 1)
        #expect(try refused() == 1)
    }

    /// Two who make the last share that there is room for: one of them misses.
    @Test func theLastShareIsMadeOnce() throws {
        var sharing = try Sharing(people: ["ana", "ben", "cho"], ShareBounds(shareCountMax: 1))
        let (ana, item) = (sharing.people[0], Item(kind: .note, id: UUID()))
        try sharing.write(item, "n", of: ana)
        for person in sharing.people[1...] { try sharing.share(item, of: ana, with: person.id) }
        let events = try sharing.collect().filter { $0.subject.kind == .sharedItem }
        var (one, two) = (ShareHandler(sharing.handler.bounds), ShareHandler(sharing.handler.bounds))
        let first = try sharing.decide([events[0]], by: &one)
        let second = try sharing.decide([events[1]], by: &two)
        #expect(try sharing.commit(first.batch, [events[0]], first.nexts).isEmpty)
        let again = try sharing.commit(second.batch, [events[1]], second.nexts)
        #expect(again.count == 1)
        try sharing.settle(again)
        #expect(try sharing.shares(ana) == 1 && sharing.parked.count == 1)
    }

    /// What an integration may write and a person may not.
    @Test func nobodyAndOneselfAreToldSo() throws {
        var sharing = try Sharing()
        let (ana, item) = (sharing.people[0], Item(kind: .note, id: UUID()))
        try sharing.write(item, "n", of: ana)
        try sharing.share(item, of: ana, with: ana.id)
        try sharing.share(item, of: ana, with: UUID())
        try sharing.settle()
        let problems = try sharing.links(ana).values
        #expect(problems.filter { $0.contains("nobody with this id") }.count == 1)
        #expect(problems.filter { $0.contains("recipient's own") }.count == 1)
        #expect(try sharing.shares(ana) == 0 && sharing.parked.isEmpty)
    }

    /// A link whose item was named wrongly names another: ids that begin alike, or another kind with the same id.
    @Test func aLinkThatNamesAnotherItemMovesItsCopy() throws {
        let item = Item(kind: .note, id: UUID())
        var sharing = try shared(item)
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let twin = Item(kind: .appointment, id: item.id)
        let alike = Item(kind: .note, id: SharedItem.id(of: item.id, with: UUID()))
        for other in [twin, alike] {
            try sharing.write(other, "other", of: ana)
            try sharing.share(other, of: ana, with: ben.id)
            try sharing.settle()
            let key = "\(other.kind.rawValue)/\(other.id.text)"
            #expect(try sharing.copies(ana, ben) == [key: Sharing.json(other.kind, "other")])
        }
    }
}

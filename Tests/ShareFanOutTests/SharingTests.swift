import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import KeyedWorker
@testable import ShareFanOut

/// Duplicate, late and concurrent events, and limits.
@Suite(.ownThreads) struct SharingTests {
    private typealias Item = SharingWorld.Item

    /// Shares one note of the first person with the second.
    private func shared(_ item: Item) throws -> SharingWorld {
        var sharing = try SharingWorld()
        try sharing.write(item, "n", of: sharing.people[0])
        try sharing.share(item, of: sharing.people[0], with: sharing.people[1].id)
        try sharing.settle()
        return sharing
    }

    @Test func linkWaitsForItsItem() throws {
        var sharing = try SharingWorld()
        let (ana, ben, item) = (sharing.people[0], sharing.people[1], Item(kind: .note, id: UUID()))
        try sharing.share(item, of: ana, with: ben.id)
        try sharing.settle()
        #expect(try sharing.shares(ben) == 0 && sharing.parked.isEmpty && !sharing.links(ana).isEmpty)
        try sharing.write(item, "n", of: ana)
        try sharing.settle()
        #expect(try sharing.copies(ana, ben).count == 1)
    }

    /// A republication changes nothing, and restores lost copies.
    @Test func republicationChangesNothingAndRepairs() throws {
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
        let path = SharingWorld.path(ana, ben)
        let directLinks = try sharing.stored(path)
        // As by manual SQL: no edits of a person.
        let share = Share.id(of: ana.id, with: ben.id)
        var batch = WriteBatch(environment: sharing.acme.id)
        let realms = try [path, ben.path].map { try sharing.acme.realm($0) }
        batch.delete(ObjectKey(realm: realms[0], kind: .note, id: item.id), decision: 0)
        batch.delete(ObjectKey(realm: realms[1], kind: .share, id: share), decision: 0)
        batch.put(ObjectKey(realm: realms[0], kind: .note, id: other.id), try .init("{\"title\":\"x\"}"), decision: 0)
        _ = try batch.commit(on: &sharing.acme.connection)
        try sharing.settle(try sharing.collect(all: true))
        #expect(try sharing.stored(path) == directLinks && sharing.shares(ben) == 1)
    }

    /// Of two decisions based on the same state, one conflicts, is retried, and has nothing to do.
    @Test func slowerWorkerConflictsAndRetries() throws {
        var sharing = try SharingWorld()
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
        // An item changes meanwhile: a decision based on its earlier state writes nothing.
        try sharing.write(items[0], "changed", of: ana)
        var again = try sharing.commit(first.batch, events, first.dispositions)
        #expect(again.contains { $0.subject.id == items[0].id || $0.subject.kind == .sharedItem })
        let before = try sharing.position()
        again += try sharing.commit(second.batch, events, second.dispositions)
        #expect(try sharing.position() - before <= 12)
        try sharing.settle(again)
        let titles = try sharing.copies(ana, ben).values.sorted()
        #expect(
            titles == [
                SharingWorld.json(.note, "changed"), SharingWorld.json(.note, "n"), SharingWorld.json(.note, "n"),
            ])
        #expect(try sharing.shares(ben) == 1)
    }

    /// A decision based on an earlier state of a new link's item writes nothing, whether the copy was created, changed
    /// or removed meanwhile.
    @Test(arguments: [0, 1, 2]) func outdatedDecisionWritesNothing(variant: Int) throws {
        var sharing = try shared(Item(kind: .note, id: UUID()))
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let item = Item(kind: .note, id: UUID())
        try sharing.write(item, "old", of: ana)
        try sharing.share(item, of: ana, with: ben.id)
        let events = try sharing.collect()
        let link = events.filter { $0.subject.kind == .sharedItem }
        var slow = ShareHandler()
        let (batch, dispositions) = try sharing.decide(link, by: &slow)
        switch variant {
        case 0: try sharing.write(item, "new", of: ana)
        case 1: try sharing.delete(.note, item.id, in: ana.path)
        default: break
        }
        try sharing.settle(events)
        if variant == 2 { try sharing.remove(item, of: ana, by: ben) }
        let before = try sharing.position()
        #expect(try sharing.commit(batch, link, dispositions).count == 1)
        #expect(try sharing.position() - before <= 3)
        let copy = try sharing.copies(ana, ben)["Note/\(item.id.text)"]
        #expect(copy == (variant == 0 ? SharingWorld.json(.note, "new") : nil))
    }

    /// A removal between a decision and its commit is not undone.
    @Test(arguments: [0, 1, 2, 3]) func concurrentRemovalIsNotUndone(variant: Int) throws {
        let item = Item(kind: .note, id: UUID())
        var sharing = try shared(item)
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        try sharing.write(item, "changed", of: ana)
        let events = try sharing.collect()
        var handler = ShareHandler()
        let (batch, dispositions) = try sharing.decide(events, by: &handler)
        switch variant {
        case 0: try sharing.remove(item, of: ana, by: ben)
        case 1: try sharing.end(ana, ben)
        case 2: try sharing.unshare(item, of: ana, with: ben.id)
        default: try sharing.delete(.note, item.id, in: ana.path)
        }
        let again = try sharing.commit(batch, events, dispositions)
        #expect(again.count == 1)
        try sharing.settle(again)
        #expect(try sharing.copies(ana, ben).isEmpty && sharing.links(ana).isEmpty)
        #expect(try sharing.shares(ben) == (variant == 1 ? 0 : 1))
    }

    /// A link after the end of a share is shared, and an earlier one is not, in any order of their events.
    @Test(arguments: [false, true]) func linkAfterTheEndOfAShareIsShared(isReversed: Bool) throws {
        var sharing = try shared(Item(kind: .note, id: UUID()))
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let other = Item(kind: .note, id: UUID())
        try sharing.write(other, "other", of: ana)
        try sharing.end(ana, ben)
        try sharing.share(other, of: ana, with: ben.id)
        let events = try sharing.collect()
        for event in isReversed ? events.reversed() : events { try sharing.settle([event]) }
        #expect(try sharing.copies(ana, ben) == ["Note/\(other.id.text)": SharingWorld.json(.note, "other")])
        #expect(try sharing.links(ana).count == 1 && sharing.shares(ana) == 1 && sharing.shares(ben) == 1)
    }

    /// The end of a share has no event of its own if the share is recreated before the relay publishes it.
    @Test func unpublishedEndOfAShareCounts() throws {
        var sharing = try shared(Item(kind: .note, id: UUID()))
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let other = Item(kind: .note, id: UUID())
        try sharing.write(other, "other", of: ana)
        try sharing.share(other, of: ana, with: ben.id)
        var events = try sharing.collect()
        try sharing.end(ana, ben)
        try sharing.share(other, of: ana, with: ben.id)
        // The remains of the old share are removed before the new one is created.
        var handler = ShareHandler()
        for _ in 0..<2 {
            let (batch, dispositions) = try sharing.decide(events, by: &handler)
            events = try sharing.commit(batch, events, dispositions)
        }
        #expect(events.allSatisfy { $0.subject.kind == .note })
        #expect(try sharing.copies(ana, ben).count == 2 && sharing.links(ana).count == 2)
        try sharing.settle()
        #expect(try sharing.copies(ana, ben) == ["Note/\(other.id.text)": SharingWorld.json(.note, "other")])
        #expect(try sharing.links(ana).count == 1 && sharing.shares(ana) == 1 && sharing.shares(ben) == 1)
    }

    /// A share is recreated immediately with equal fields: devices have closed its realm, and detect it again.
    @Test func recreatedShareUpdatesReferences() throws {
        var sharing = try shared(Item(kind: .note, id: UUID()))
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let other = Item(kind: .note, id: UUID())
        try sharing.write(other, "other", of: ana)
        try sharing.end(ana, ben)
        try sharing.share(other, of: ana, with: ben.id)
        try sharing.settle()
        #expect(try sharing.copies(ana, ben) == ["Note/\(other.id.text)": SharingWorld.json(.note, "other")])
        #expect(try sharing.areReferencesCurrent(ana, ben))
    }

    /// More links of an ended share than one batch reads.
    @Test func shareOfManyItemsEnds() throws {
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
        #expect(try sharing.stored(SharingWorld.path(ana, ben)).isEmpty && sharing.links(ana).isEmpty)
    }

    /// The oldest links have copies; a further one reports the limit until there is capacity.
    @Test func itemIsSharedUpToLinkCountMax() throws {
        var sharing = try SharingWorld(people: (0..<5).map { "person\($0)" }, ShareLimits(linkCountMax: 2))
        let (people, item) = (sharing.people, Item(kind: .note, id: UUID()))
        try sharing.write(item, "n", of: people[0])
        for person in people[1...] { try sharing.share(item, of: people[0], with: person.id) }
        try sharing.settle()
        func counts() throws -> [Int] { try people[1...].map { try sharing.copies(people[0], $0).count } }
        #expect(try counts() == [1, 1, 0, 0] && sharing.parked.count == 2)
        #expect(try sharing.links(people[0]).values.filter { $0.contains("shared with 2 people") }.count == 2)
        let before = try sharing.position()
        try sharing.settle(try sharing.collect(all: true))
        try sharing.retryParked()
        #expect(try sharing.position() == before && sharing.parked.count == 2)
        try sharing.unshare(item, of: people[0], with: people[1].id)
        try sharing.settle()
        try sharing.retryParked()
        #expect(try counts() == [0, 1, 1, 0] && sharing.parked.count == 1)
        #expect(try sharing.links(people[0]).values.filter { $0.contains("shared with 2 people") }.count == 1)
        // The item is deleted: no link waits.
        try sharing.delete(.note, item.id, in: people[0].path)
        try sharing.settle()
        try sharing.retryParked()
        #expect(try counts() == [0, 0, 0, 0] && sharing.parked.isEmpty && sharing.links(people[0]).isEmpty)
    }

    /// A person's shares are limited, as an owner and as a recipient, also for concurrent links.
    @Test(arguments: [true, false]) func personHasSharesUpToShareCountMax(isOwner: Bool) throws {
        var sharing = try SharingWorld(people: (0..<5).map { "person\($0)" }, ShareLimits(shareCountMax: 2))
        let (people, one) = (sharing.people, sharing.people[0])
        let items = people.map { _ in Item(kind: .note, id: UUID()) }
        for (item, person) in zip(items, people).dropFirst() {
            let (owner, recipient) = isOwner ? (one, person) : (person, one)
            try sharing.write(item, "n", of: owner)
            try sharing.share(item, of: owner, with: recipient.id)
        }
        try sharing.settle()
        #expect(try sharing.shares(one) == 2 && sharing.parked.count == 2)
        func rejectedCount() throws -> Int {
            var count = 0
            for person in people {
                count += try sharing.links(person).values.count { $0.contains("2 shares, the maximum") }
            }
            return count
        }
        #expect(try rejectedCount() == 2)
        let newShares = try #require(people.dropFirst().first { (try? sharing.shares($0)) == 1 })
        if isOwner { try sharing.end(one, newShares) } else { try sharing.end(newShares, one) }
        try sharing.settle()
        try sharing.retryParked()
        #expect(try sharing.shares(one) == 2 && sharing.shares(newShares) == 0 && sharing.parked.count == 1)
        #expect(try rejectedCount() == 1)
    }

    /// Two concurrent decisions create the last share within the limit: one of them conflicts.
    @Test func lastShareIsCreatedOnce() throws {
        var sharing = try SharingWorld(people: ["ana", "ben", "cho"], ShareLimits(shareCountMax: 1))
        let (ana, item) = (sharing.people[0], Item(kind: .note, id: UUID()))
        try sharing.write(item, "n", of: ana)
        for person in sharing.people[1...] { try sharing.share(item, of: ana, with: person.id) }
        let events = try sharing.collect().filter { $0.subject.kind == .sharedItem }
        var (one, two) = (ShareHandler(sharing.handler.limits), ShareHandler(sharing.handler.limits))
        let first = try sharing.decide([events[0]], by: &one)
        let second = try sharing.decide([events[1]], by: &two)
        #expect(try sharing.commit(first.batch, [events[0]], first.dispositions).isEmpty)
        let again = try sharing.commit(second.batch, [events[1]], second.dispositions)
        #expect(again.count == 1)
        try sharing.settle(again)
        #expect(try sharing.shares(ana) == 1 && sharing.parked.count == 1)
    }

    /// Recipients that an integration may write and a person may not.
    @Test func invalidRecipientsAreReported() throws {
        var sharing = try SharingWorld()
        let (ana, item) = (sharing.people[0], Item(kind: .note, id: UUID()))
        try sharing.write(item, "n", of: ana)
        try sharing.share(item, of: ana, with: ana.id)
        try sharing.share(item, of: ana, with: UUID())
        try sharing.settle()
        let problems = try sharing.links(ana).values
        #expect(problems.filter { $0.contains("no person with this id") }.count == 1)
        #expect(problems.filter { $0.contains("recipient already owns it") }.count == 1)
        #expect(try sharing.shares(ana) == 0 && sharing.parked.isEmpty)
    }

    /// A link with a wrong item is changed to another one: an id with the same first bytes, or another kind with the
    /// same id.
    @Test func changedItemOfALinkMovesItsCopy() throws {
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
            #expect(try sharing.copies(ana, ben) == [key: SharingWorld.json(other.kind, "other")])
        }
    }
}

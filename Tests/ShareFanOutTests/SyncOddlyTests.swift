import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import ShareFanOut

/// The sharing scenarios of SyncOddly, by the numbers of its documented tests. The gateway's tests cover writes that a
/// device may not make: 2, 4, 8, 12 and sharing with oneself.
@Suite(.ownThreads) struct SyncOddlyTests {
    private typealias Item = SharingWorld.Item

    /// Writes two appointments and two notes of the first person.
    private func items(_ sharing: inout SharingWorld) throws -> [Item] {
        let items =
            [Item(kind: .appointment, id: UUID()), Item(kind: .appointment, id: UUID())]
            + [Item(kind: .note, id: UUID()), Item(kind: .note, id: UUID())]
        for (number, item) in items.enumerated() { try sharing.write(item, "\(number)", of: sharing.people[0]) }
        return items
    }

    /// 1.
    @Test func unsharedItemsHaveNoCopies() throws {
        var sharing = try SharingWorld()
        _ = try items(&sharing)
        let before = try sharing.position()
        try sharing.settle()
        #expect(try sharing.position() == before)
        for person in sharing.people { #expect(try sharing.shares(person) == 0) }
    }

    /// 3: the last item is unshared; the share stays until a person ends it.
    @Test func shareStaysWithoutItems() throws {
        var sharing = try SharingWorld()
        let (ana, ben, item) = (sharing.people[0], sharing.people[1], try items(&sharing)[0])
        try sharing.share(item, of: ana, with: ben.id)
        try sharing.settle()
        try sharing.unshare(item, of: ana, with: ben.id)
        try sharing.settle()
        #expect(try sharing.copies(ana, ben).isEmpty && sharing.links(ana).isEmpty)
        #expect(try sharing.stored(SharingWorld.path(ana, ben)).count == 1)
        #expect(try sharing.shares(ana) == 1 && sharing.shares(ben) == 1)
    }

    /// 4 and 12: a copy of an item that the owner does not have or share is removed when it is processed.
    @Test(arguments: [SharedItem.ItemKind.note, .appointment]) func copyWithoutItsItemIsRemoved(
        kind: SharedItem.ItemKind
    ) throws {
        var sharing = try SharingWorld()
        let (ana, ben, item) = (sharing.people[0], sharing.people[1], try items(&sharing)[2])
        try sharing.share(item, of: ana, with: ben.id)
        try sharing.settle()
        let extra = Item(kind: kind, id: UUID())
        try sharing.put(kind.kind, extra.id, SharingWorld.json(kind, "extra"), in: SharingWorld.path(ana, ben))
        #expect(try sharing.copies(ana, ben).count == 2)
        try sharing.settle()
        #expect(try sharing.copies(ana, ben) == ["Note/\(item.id.text)": SharingWorld.json(.note, "2")])
    }

    /// 5, 6 and 7.
    @Test func sharedItemIsCopiedOnce() throws {
        var sharing = try SharingWorld()
        let (ana, ben, items) = (sharing.people[0], sharing.people[1], try items(&sharing))
        #expect(try sharing.copies(ana, ben).isEmpty && sharing.links(ana).isEmpty && sharing.links(ben).isEmpty)
        for item in items { try sharing.share(item, of: ana, with: ben.id) }
        try sharing.settle()
        #expect(try sharing.links(ana).count == 4 && sharing.links(ben).isEmpty)
        let copies = try sharing.copies(ana, ben)
        let expected = items.enumerated().map { number, item in
            ("\(item.kind.rawValue)/\(item.id.text)", SharingWorld.json(item.kind, "\(number)"))
        }
        #expect(copies == Dictionary(uniqueKeysWithValues: expected))
        let share = try #require(try sharing.stored(SharingWorld.path(ana, ben)).first { $0.key.hasPrefix("Share/") })
        for person in [ana, ben] { #expect(try sharing.stored(person.path)[share.key] == share.value) }
        #expect(share.value.contains("\"owner\": \"\(ana.id.text)\"") && share.value.contains("\"since\": \"2014"))
        // Shared again: as before.
        for item in items { try sharing.share(item, of: ana, with: ben.id) }
        let before = try sharing.position()
        try sharing.settle()
        #expect(try sharing.position() == before)
        #expect(try sharing.copies(ana, ben) == copies && sharing.shares(ana) == 1 && sharing.shares(ben) == 1)
        #expect(try sharing.links(ana).count == 4 && sharing.links(ben).isEmpty)
    }

    /// Links are per recipient: one of two recipients loses an item, and the other keeps it.
    @Test func unsharingAffectsOneRecipient() throws {
        var sharing = try SharingWorld()
        let (ana, ben, cho) = (sharing.people[0], sharing.people[1], sharing.people[2])
        let items = try items(&sharing)
        for item in [items[0], items[2]] {
            for person in [ben, cho] { try sharing.share(item, of: ana, with: person.id) }
        }
        try sharing.settle()
        try sharing.unshare(items[0], of: ana, with: ben.id)
        try sharing.settle()
        #expect(try sharing.copies(ana, ben).count == 1 && sharing.copies(ana, cho).count == 2)
        #expect(try sharing.links(ana).count == 3)
        try sharing.write(items[0], "new", of: ana)
        try sharing.settle()
        let (note, appointment) = ("Note/\(items[2].id.text)", "Appointment/\(items[0].id.text)")
        let remaining = [note: SharingWorld.json(.note, "2")]
        #expect(try sharing.copies(ana, ben) == remaining)
        let all = remaining.merging([appointment: SharingWorld.json(.appointment, "new")]) { first, _ in first }
        #expect(try sharing.copies(ana, cho) == all)
    }

    /// 9: many items shared at once with a new recipient create one share; both directions create two.
    @Test func pairHasOneShare() throws {
        var sharing = try SharingWorld()
        let (ana, ben, items) = (sharing.people[0], sharing.people[1], try items(&sharing))
        let own = Item(kind: .note, id: UUID())
        try sharing.write(own, "ben's", of: ben)
        try sharing.share(own, of: ben, with: ana.id)
        for item in items { try sharing.share(item, of: ana, with: ben.id) }
        try sharing.settle()
        #expect(try sharing.copies(ana, ben).count == 4 && sharing.copies(ben, ana).count == 1)
        #expect(try sharing.shares(ana) == 2 && sharing.shares(ben) == 2)
    }

    /// 10: twenty people each share an item with the next.
    @Test func twentyPeopleShareInARing() throws {
        var sharing = try SharingWorld(people: (0..<20).map { "person\($0)" })
        let people = sharing.people
        let items = people.map { _ in Item(kind: .appointment, id: UUID()) }
        for (number, item) in items.enumerated() {
            try sharing.write(item, "\(number)", of: people[number])
            try sharing.share(item, of: people[number], with: people[(number + 1) % 20].id)
        }
        try sharing.settle()
        for number in people.indices {
            let copies = try sharing.copies(people[number], people[(number + 1) % 20])
            #expect(copies.values.map { $0 } == [SharingWorld.json(.appointment, "\(number)")])
            #expect(try sharing.shares(people[number]) == 2)
        }
    }

    /// 11: a few among 2,000 people, and one item with many of them.
    @Test func fewAmongManyPeopleShare() throws {
        var sharing = try SharingWorld(people: (0..<2_000).map { "person\($0)" })
        let people = sharing.people
        let item = Item(kind: .note, id: UUID())
        try sharing.write(item, "for many", of: people[0])
        for number in 1...100 { try sharing.share(item, of: people[0], with: people[number * 19].id) }
        try sharing.settle()
        try sharing.write(item, "changed", of: people[0])
        try sharing.settle()
        #expect(try sharing.shares(people[0]) == 100)
        for number in 1...100 {
            let copies = try sharing.copies(people[0], people[number * 19])
            #expect(copies.values.map { $0 } == [SharingWorld.json(.note, "changed")])
        }
    }

    /// 13, 14, and the completion of a task.
    @Test func changeUpdatesCopies() throws {
        var sharing = try SharingWorld()
        let (ana, ben, items) = (sharing.people[0], sharing.people[1], try items(&sharing))
        for item in items { for person in sharing.people[1...] { try sharing.share(item, of: ana, with: person.id) } }
        try sharing.settle()
        try sharing.write(items[0], "moved", of: ana)
        let done = #"{"body": "b", "title": "2", "isDone": true, "isTask": true}"#
        try sharing.put(.note, items[2].id, done, in: ana.path)
        try sharing.settle()
        for person in [ben, sharing.people[2]] {
            let copies = try sharing.copies(ana, person)
            #expect(copies["Appointment/\(items[0].id.text)"] == SharingWorld.json(.appointment, "moved"))
            #expect(copies["Note/\(items[2].id.text)"] == done && copies.count == 4)
        }
    }

    /// 15 and 16. Its copies are deleted, too.
    @Test(arguments: [0, 2]) func deletedItemHasNoCopies(number: Int) throws {
        var sharing = try SharingWorld()
        let (ana, items) = (sharing.people[0], try items(&sharing))
        for item in items { for person in sharing.people[1...] { try sharing.share(item, of: ana, with: person.id) } }
        try sharing.settle()
        try sharing.delete(items[number].kind.kind, items[number].id, in: ana.path)
        try sharing.settle()
        for person in sharing.people[1...] { #expect(try sharing.copies(ana, person).count == 3) }
        #expect(try sharing.links(ana).count == 6)
    }

    /// 17: the owner ends all shares.
    @Test func ownerEndsAllShares() throws {
        var sharing = try SharingWorld()
        let (ana, items) = (sharing.people[0], try items(&sharing))
        for item in items { for person in sharing.people[1...] { try sharing.share(item, of: ana, with: person.id) } }
        try sharing.settle()
        for person in sharing.people[1...] { try sharing.end(ana, person) }
        try sharing.settle()
        for person in sharing.people[1...] { #expect(try sharing.stored(SharingWorld.path(ana, person)).isEmpty) }
        for person in sharing.people { #expect(try sharing.shares(person) == 0 && sharing.links(person).isEmpty) }
        // The items still exist, and may be shared again.
        #expect(try sharing.items(ana).count == 4)
        try sharing.share(items[3], of: ana, with: sharing.people[1].id)
        try sharing.settle()
        #expect(try sharing.copies(ana, sharing.people[1]).count == 1 && sharing.shares(sharing.people[1]) == 1)
    }

    /// 18: the recipient ends one of two shares, and removes one item of the other.
    @Test func recipientEndsShareOrRemovesCopy() throws {
        var sharing = try SharingWorld()
        let (ana, ben, cho) = (sharing.people[0], sharing.people[1], sharing.people[2])
        let items = try items(&sharing)
        let bens = Item(kind: .note, id: UUID())
        try sharing.write(bens, "ben's", of: ben)
        try sharing.share(bens, of: ben, with: cho.id)
        for item in items { try sharing.share(item, of: ana, with: cho.id) }
        try sharing.settle()
        try sharing.end(ben, cho)
        try sharing.remove(items[1], of: ana, by: cho)
        try sharing.settle()
        #expect(try sharing.stored(SharingWorld.path(ben, cho)).isEmpty && sharing.links(ben).isEmpty)
        #expect(try sharing.copies(ana, cho).count == 3 && sharing.links(ana).count == 3)
        #expect(try sharing.shares(ben) == 0 && sharing.shares(ana) == 1 && sharing.shares(cho) == 1)
        // An item that is shared again is copied again.
        try sharing.share(items[1], of: ana, with: cho.id)
        try sharing.settle()
        #expect(try sharing.copies(ana, cho).count == 4)
    }

    /// Not among the documented tests: a person's own item has the same id as one shared with them.
    @Test(arguments: [SharedItem.ItemKind.note, .appointment]) func recipientMayOwnTheSameItem(
        kind: SharedItem.ItemKind
    ) throws {
        var sharing = try SharingWorld()
        let (ana, ben, cho) = (sharing.people[0], sharing.people[1], sharing.people[2])
        let item = Item(kind: kind, id: UUID())
        for person in [ana, ben] {
            try sharing.write(item, "same", of: person)
            try sharing.share(item, of: person, with: cho.id)
        }
        try sharing.share(item, of: ana, with: ben.id)
        try sharing.settle()
        try sharing.write(item, "ana's", of: ana)
        try sharing.settle()
        let key = "\(kind.rawValue)/\(item.id.text)"
        #expect(try sharing.copies(ana, ben)[key] == SharingWorld.json(kind, "ana's"))
        #expect(try sharing.copies(ana, cho)[key] == SharingWorld.json(kind, "ana's"))
        #expect(try sharing.copies(ben, cho)[key] == SharingWorld.json(kind, "same"))
        #expect(try sharing.stored(ben.path)[key] == SharingWorld.json(kind, "same"))
        try sharing.remove(item, of: ana, by: cho)
        try sharing.delete(kind.kind, item.id, in: ben.path)
        try sharing.settle()
        #expect(try sharing.copies(ana, ben).count == 1 && sharing.copies(ana, cho).isEmpty)
        #expect(try sharing.copies(ben, cho).isEmpty)
    }

    /// A share of an unknown owner is ignored: it stays unchanged, opens for no person, and may be ended.
    @Test func shareOfUnknownOwnerIsIgnored() throws {
        var sharing = try SharingWorld()
        let ben = sharing.people[1]
        let unknown = SharingWorld.Person(email: "unknown@example.com", id: UUID())
        let (path, share) = (SharingWorld.path(unknown, ben), Share.id(of: unknown.id, with: ben.id))
        let item = Item(kind: .note, id: UUID())
        let fields = "{\"owner\": \"\(unknown.id.text)\", \"recipient\": \"\(ben.id.text)\"}"
        try sharing.put(.share, share, fields, in: path)
        try sharing.put(.note, item.id, SharingWorld.json(.note, "n"), in: path)
        try sharing.write(item, "changed", of: unknown)
        try sharing.share(item, of: unknown, with: ben.id)
        let note = ["Note/\(item.id.text)": SharingWorld.json(.note, "n")]
        try sharing.settle()
        let stored = try sharing.stored(path)
        #expect(stored["Share/\(share.text)"]?.contains(unknown.id.text) == true && stored.count == 2)
        #expect(
            try sharing.copies(unknown, ben) == note && sharing.shares(ben) == 0 && sharing.links(unknown).count == 1)
        try sharing.end(unknown, ben)
        try sharing.settle()
        #expect(try sharing.stored(path) == note && sharing.shares(ben) == 0 && sharing.shares(unknown) == 0)
    }

    /// A person is identified by their account, which stays when their `Person` object is deleted: shared items stay,
    /// and are updated meanwhile.
    @Test func deletedPersonKeepsSharedItems() throws {
        var sharing = try SharingWorld()
        let (ana, ben, items) = (sharing.people[0], sharing.people[1], try items(&sharing))
        try sharing.put(.person, ben.id, #"{"name":"ben"}"#, in: .common)
        let own = Item(kind: .note, id: UUID())
        try sharing.write(own, "ben's", of: ben)
        try sharing.share(own, of: ben, with: ana.id)
        try sharing.share(items[0], of: ana, with: ben.id)
        try sharing.settle()
        let before = (try sharing.copies(ana, ben), try sharing.copies(ben, ana))
        try sharing.delete(.person, ben.id, in: .common)
        try sharing.settle(try sharing.collect(all: true))
        #expect(try sharing.copies(ana, ben) == before.0 && sharing.copies(ben, ana) == before.1)
        #expect(try sharing.shares(ana) == 2 && sharing.shares(ben) == 2 && before.0.count == 1 && before.1.count == 1)
        try sharing.write(items[0], "new", of: ana)
        try sharing.share(items[2], of: ana, with: ben.id)
        try sharing.put(.person, ben.id, #"{"name":"ben"}"#, in: .common)
        try sharing.settle()
        let copies = try sharing.copies(ana, ben)
        #expect(
            copies["Appointment/\(items[0].id.text)"] == SharingWorld.json(.appointment, "new") && copies.count == 2)
    }
}

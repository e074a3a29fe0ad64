import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import KeyedWorker
@testable import ShareFanOut

/// The history of ended shares, and restored items: the data operations and the features that SyncOddly's document
/// lists as not implemented.
@Suite(.ownThreads) struct SharingHistoryTests {
    private typealias Item = SharingWorld.Item

    private let items = [Item(kind: .appointment, id: UUID()), Item(kind: .note, id: UUID())]

    /// Shares an appointment and a note of the first person with the two others.
    private func shared() throws -> SharingWorld {
        var sharing = try SharingWorld()
        try sharing.put(.person, sharing.people[0].id, #"{"name":"Ana"}"#, in: .common)
        for (item, text) in zip(items, ["Kick-off", "Shopping"]) {
            try sharing.write(item, text, of: sharing.people[0])
            for person in sharing.people[1...] { try sharing.share(item, of: sharing.people[0], with: person.id) }
        }
        try sharing.settle()
        return sharing
    }

    /// The recipient keeps an appointment with its time, past ones included, and a note's title without its text.
    @Test func recipientSeesWhatTheOwnerCancelled() throws {
        var sharing = try shared()
        let (ana, ben, cho) = (sharing.people[0], sharing.people[1], sharing.people[2])
        for item in items { try sharing.unshare(item, of: ana, with: ben.id) }
        try sharing.settle()
        let ended = try sharing.ended(ben)
        let appointment = try #require(ended[EndedShare.id(of: ana.id, item: items[0].id)])
        #expect(appointment.owner == ana.id && appointment.kind == .appointment && appointment.item == items[0].id)
        #expect(appointment.title == "Kick-off" && appointment.reason == .cancelled)
        #expect(appointment.when == Timestamp("2015-03-30T08:00:00Z") && appointment.durationMinutes == 30)
        let note = try #require(ended[EndedShare.id(of: ana.id, item: items[1].id)])
        #expect(note.title == "Shopping" && note.kind == .note && note.when == nil && ended.count == 2)
        #expect(
            try sharing.notices(ben) == [
                #"Ana no longer shares "Kick-off" with you"#, #"Ana no longer shares "Shopping" with you"#,
            ])
        #expect(try sharing.ended(cho).isEmpty && sharing.notices(cho).isEmpty && sharing.notices(ana).isEmpty)
        // The owner sees what they shared, since when, and when it ended.
        let deleted = try #require(try sharing.deleted(ana)[SharedItem.id(of: items[0].id, with: ben.id)])
        #expect(deleted.reason == .cancelled && deleted.sharedItem?.recipient == ben.id && deleted.since != nil)
    }

    /// A cancelled share is restored by a put of its content, and the line is removed.
    @Test func cancelledShareIsRestored() throws {
        var sharing = try shared()
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        try sharing.unshare(items[0], of: ana, with: ben.id)
        try sharing.settle()
        let deleted = try sharing.deleted(ana)
        let id = SharedItem.id(of: items[0].id, with: ben.id)
        let link = try #require(deleted[id]?.sharedItem)
        let json = String(decoding: try CanonicalJSON(encoding: link).bytes, as: UTF8.self)
        // Two devices restore it.
        for _ in 0..<2 { try sharing.put(.sharedItem, id, json, in: ana.path) }
        try sharing.settle()
        #expect(try sharing.copies(ana, ben).count == 2 && sharing.ended(ben).isEmpty && sharing.deleted(ana).isEmpty)
        #expect(try sharing.notices(ben).count == 1)
    }

    /// Before the service has processed the deletion, and after it.
    @Test(arguments: [false, true]) func restoredItemIsSharedAgain(isProcessed: Bool) throws {
        var sharing = try shared()
        let (ana, ben, cho) = (sharing.people[0], sharing.people[1], sharing.people[2])
        let before = (try sharing.copies(ana, ben), try sharing.links(ana).count)
        try sharing.delete(.appointment, items[0].id, in: ana.path)
        if isProcessed {
            try sharing.settle()
            for person in [ben, cho] {
                let line = try sharing.ended(person)[EndedShare.id(of: ana.id, item: items[0].id)]
                #expect(line?.reason == .itemDeleted && line?.title == "Kick-off")
                #expect(try sharing.notices(person) == [#"Ana has deleted "Kick-off", which was shared with you"#])
            }
            #expect(try sharing.links(ana).count == before.1 - 2)
        }
        let deleted = try sharing.deleted(ana)
        let content = try #require(deleted[items[0].id]?.appointment)
        #expect(content.why == "Kick-off" && deleted.count == (isProcessed ? 3 : 1))
        let json = String(decoding: try CanonicalJSON(encoding: content).bytes, as: UTF8.self)
        for _ in 0..<2 { try sharing.put(.appointment, items[0].id, json, in: ana.path) }
        try sharing.settle()
        #expect(try sharing.copies(ana, ben) == before.0 && sharing.copies(ana, cho) == before.0)
        #expect(try sharing.links(ana).count == before.1 && sharing.deleted(ana).isEmpty)
        #expect(try sharing.ended(ben).isEmpty && sharing.ended(cho).isEmpty)
        #expect(try sharing.notices(ben).count == (isProcessed ? 1 : 0))
        let position = try sharing.position()
        try sharing.settle(try sharing.collect(all: true))
        #expect(try sharing.position() == position)
    }

    /// A link that its recipient or its owner ended does not return with the item.
    @Test(arguments: [0, 1, 2, 3]) func endedLinkStaysEnded(variant: Int) throws {
        var sharing = try shared()
        let (ana, ben, cho) = (sharing.people[0], sharing.people[1], sharing.people[2])
        switch variant {
        case 0: try sharing.remove(items[0], of: ana, by: ben)
        case 1: try sharing.unshare(items[0], of: ana, with: ben.id)
        default: break
        }
        try sharing.delete(.appointment, items[0].id, in: ana.path)
        if variant == 2 { try sharing.remove(items[0], of: ana, by: ben) }
        try sharing.settle()
        if variant == 3 {
            try sharing.end(ana, ben, by: ben)
            try sharing.settle()
        }
        try sharing.write(items[0], "Kick-off", of: ana)
        try sharing.settle()
        let key = "Appointment/\(items[0].id.text)"
        #expect(try sharing.copies(ana, ben)[key] == nil && sharing.copies(ana, cho)[key] != nil)
        let reason = try sharing.deleted(ana)[SharedItem.id(of: items[0].id, with: ben.id)]?.reason
        let expected: [EndReason] = [.removed, .cancelled, .removed, .shareEnded]
        #expect(reason == expected[variant])
    }

    /// The recipient is not notified of what they removed, and the owner sees it.
    @Test func recipientRemovesWithoutNotice() throws {
        var sharing = try shared()
        let (ana, ben, cho) = (sharing.people[0], sharing.people[1], sharing.people[2])
        try sharing.remove(items[0], of: ana, by: ben)
        try sharing.end(ana, cho, by: cho)
        try sharing.settle()
        for person in [ben, cho] { #expect(try sharing.ended(person).isEmpty && sharing.notices(person).isEmpty) }
        let deleted = try sharing.deleted(ana)
        #expect(deleted.count == 3 && deleted.values.allSatisfy { $0.reason == .removed && $0.sharedItem != nil })
    }

    /// The end of a whole share: a line for each item, and one notice.
    @Test(arguments: [true, false]) func endOfShareNotifiesOnce(isByOwner: Bool) throws {
        var sharing = try shared()
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        try sharing.end(ana, ben, by: isByOwner ? ana : nil)
        try sharing.settle()
        let ended = try sharing.ended(ben)
        #expect(ended.count == items.count)
        let reason: EndReason = isByOwner ? .cancelled : .shareEnded
        #expect(ended.values.allSatisfy { $0.reason == reason && $0.since != nil })
        #expect(try sharing.notices(ben) == ["Ana no longer shares anything with you"])
        #expect(try sharing.shares(ana) == 1 && sharing.shares(ben) == 0)
    }

    /// A crash before the commit, a second worker with the same event, and a repeated event.
    @Test func endIsRecordedOnce() throws {
        var sharing = try shared()
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        try sharing.unshare(items[1], of: ana, with: ben.id)
        let events = try sharing.collect()
        var (one, two) = (ShareHandler(), ShareHandler())
        // Crashes: the batch is lost.
        _ = try sharing.decide(events, by: &one)
        let (first, second) = (try sharing.decide(events, by: &one), try sharing.decide(events, by: &two))
        #expect(try sharing.commit(first.batch, events, first.dispositions).isEmpty)
        let again = try sharing.commit(second.batch, events, second.dispositions)
        #expect(again.count == 1)
        try sharing.settle(again + events)
        #expect(try sharing.ended(ben).count == 1 && sharing.notices(ben).count == 1)
    }

    /// More links than one batch restores.
    @Test func manyLinksReturnWithTheirItem() throws {
        var sharing = try SharingWorld(people: (0..<451).map { "person\($0)" })
        let (ana, item) = (sharing.people[0], Item(kind: .note, id: UUID()))
        try sharing.write(item, "n", of: ana)
        for person in sharing.people[1...] { try sharing.share(item, of: ana, with: person.id) }
        try sharing.settle()
        try sharing.delete(.note, item.id, in: ana.path)
        // The item returns right after the links have ended, before the service's own events are processed.
        let events = try sharing.collect()
        var handler = ShareHandler()
        let (batch, dispositions) = try sharing.decide(events, by: &handler)
        var again = try sharing.commit(batch, events, dispositions)
        try sharing.write(item, "n", of: ana)
        again += try sharing.collect()
        try sharing.settle(again + events)
        #expect(try sharing.links(ana).count == 450 && sharing.deleted(ana).isEmpty)
        for person in sharing.people[1...] {
            #expect(try sharing.copies(ana, person).count == 1 && sharing.ended(person).isEmpty)
        }
    }

    /// The restore of an item and a concurrent end of the share: the decision conflicts.
    @Test func endDuringRestoreWins() throws {
        var sharing = try shared()
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        try sharing.delete(.note, items[1].id, in: ana.path)
        try sharing.settle()
        try sharing.write(items[1], "Shopping", of: ana)
        let events = try sharing.collect()
        var handler = ShareHandler()
        let (batch, dispositions) = try sharing.decide(events, by: &handler)
        try sharing.end(ana, ben, by: ben)
        let again = try sharing.commit(batch, events, dispositions)
        #expect(again.count == 1)
        try sharing.settle(again)
        #expect(try sharing.copies(ana, ben).isEmpty && sharing.shares(ben) == 0)
        #expect(try sharing.copies(ana, sharing.people[2]).count == 2)
    }

    /// The recipient is notified of each item once: not of its changes, nor by repeated events.
    @Test func recipientIsNotifiedOfNewItems() throws {
        var sharing = try shared()
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        let texts = [#"Ana shares "Kick-off" with you"#, #"Ana shares "Shopping" with you"#]
        #expect(try sharing.notices(ben, [.itemShared]) == texts)
        #expect(try sharing.notices(ana, [.itemShared]).isEmpty)
        let notices = try sharing.objects(.notice, of: ben, as: Notice.self).values
        #expect(Set(notices.compactMap(\.about)) == Set(items.map(\.id)))
        try sharing.write(items[0], "Kick-off 2", of: ana)
        try sharing.settle()
        let position = try sharing.position()
        try sharing.settle(try sharing.collect(all: true))
        #expect(try sharing.position() == position && sharing.notices(ben, [.itemShared]) == texts)
        // An item that is shared again is another event.
        try sharing.unshare(items[0], of: ana, with: ben.id)
        try sharing.settle()
        try sharing.share(items[0], of: ana, with: ben.id)
        try sharing.settle()
        #expect(try sharing.notices(ben, [.itemShared]).count == 3)
    }

    /// A crash before the commit, a second worker with the same event, and events in the reverse order.
    @Test func beginIsNotifiedOnce() throws {
        var sharing = try SharingWorld()
        let (ana, ben) = (sharing.people[0], sharing.people[1])
        try sharing.write(items[1], "Shopping", of: ana)
        try sharing.share(items[1], of: ana, with: ben.id)
        let events = Array(try sharing.collect().reversed())
        var (one, two) = (ShareHandler(), ShareHandler())
        // Crashes: the batch is lost.
        _ = try sharing.decide(events, by: &one)
        let (first, second) = (try sharing.decide(events, by: &one), try sharing.decide(events, by: &two))
        var again = try sharing.commit(first.batch, events, first.dispositions)
        let conflicted = try sharing.commit(second.batch, events, second.dispositions)
        #expect(!conflicted.isEmpty)
        again += conflicted
        try sharing.settle(again + events)
        #expect(try sharing.notices(ben, [.itemShared]) == [#"The owner shares "Shopping" with you"#])
    }

    /// A text without a limit would make a notice too large.
    @Test func longTitlesAreTruncated() throws {
        let line = EndedShare(
            owner: UUID(), kind: .note, item: UUID(), title: String(repeating: "😀", count: 20_000),
            endedAt: Timestamp(millisecondsSinceEpoch: 0), reason: .cancelled)
        let name = String(repeating: "n", count: 4_000)
        let notice = try #require(SharingHistory.notice(line, id: UUID(), owner: name, verdict: .deleted))
        #expect(try CanonicalJSON(encoding: notice).bytes.count < Kind.notice.fieldsBytesMax)
    }
}

import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import DeviceClient

/// Shared items on a device, and the undo of a deletion in its queue.
@Suite(.ownThreads) struct SharedItemListTests {
    private typealias Held = HeldContents

    @Test func itemIsSharedWhileALinkNamesIt() throws {
        let (own, item, other) = (try RealmPath.user("ana@example.com"), Held.id(20), Held.id(21))
        var contents: [RealmPath: RealmContent] = [:]
        func link(_ item: UUID, _ recipient: UUID, problem: String? = nil) -> SharedItem {
            SharedItem(kind: .note, item: item, recipient: recipient, problem: problem)
        }
        for recipient in [Held.bo, Held.id(3)] {
            try contents.put(
                .sharedItem, SharedItem.id(of: item, with: recipient), link(item, recipient), in: own)
        }
        // The recipient gets no copy.
        try contents.put(
            .sharedItem, SharedItem.id(of: other, with: Held.bo), link(other, Held.bo, problem: "full"), in: own)
        // Another person's.
        try contents.put(
            .sharedItem, SharedItem.id(of: other, with: Held.ana), link(other, Held.ana),
            in: try .user("bo@example.com"))
        let list = SharedItemList(realm: own, in: contents)
        #expect(list.recipients == [item: [Held.bo, Held.id(3)]])
        #expect(list.isShared(item) && !list.isShared(other))
    }

    /// The undo is queued offline, stored with the app, and sent with its marker.
    @Test func queuedRestoreKeepsItsMarker() throws {
        let note = Array(#"{"title":"n"}"#.utf8)
        var queue = DeviceQueue(clientID: UUID())
        let own = try RealmPath.user("ana@example.com")
        _ = queue.enqueue(Mutation(operation: .delete, kind: .note, id: Held.id(20)), in: own)
        _ = queue.enqueue(
            Mutation(operation: .put, kind: .note, id: Held.id(20), fields: note, restores: true), in: own)
        let stored = try JSONDecoder().decode(DeviceQueue.self, from: try JSONEncoder().encode(queue))
        #expect(stored == queue && stored.waiting.map(\.mutation.restores) == [false, true])
        let request = queue.nextRequest(countMax: 10)
        let body = String(decoding: try #require(request).body, as: UTF8.self)
        #expect(body.hasSuffix(#""fields":{"title":"n"},"restore":true}]}"#))
        #expect(body.split(separator: "restore").count == 2)
    }
}

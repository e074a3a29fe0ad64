import Essentials
import Foundation
import Model
import TestSupport
import Testing

@testable import RealmGateway

/// The content of deleted items, and its restoration: offline, on two devices, and mixed with other mutations.
@Suite(.ownThreads) struct GatewayRestoreTests {
    private static let note = "{\"title\":\"Shopping\",\"body\":\"20 m\"}"
    private static let appointment = "{\"when\":\"2015-03-30T08:00:00Z\",\"durationMinutes\":30,\"why\":\"Kick-off\"}"

    private func restoring(_ mutation: String, _ value: String = "true") -> String {
        mutation.dropLast() + ",\"restore\":\(value)}"
    }

    private func deleted(_ id: UUID, _ fixture: GatewayFixture, _ realm: String) throws -> DeletedObject? {
        try fixture.stored(realm)["DeletedObject/\(id.text)"].map {
            try JSONDecoder().decode(DeletedObject.self, from: Data($0.utf8))
        }
    }

    @Test func deletedNoteIsRetainedAndRestored() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (realm, id) = (await ana.realm, UUID())
            let other = UUID()
            let start = Timestamp.now()
            _ = try await ana.send([
                await ana.mutation("put", id, Self.note, kind: "Note"), await ana.mutation("delete", id, kind: "Note"),
            ])
            let content = try #require(try deleted(id, fixture, realm))
            #expect(content.note == Note(title: "Shopping", body: "20 m") && content.kind == .note)
            #expect(content.deletedAt.adding(.seconds(1)) > start && content.reason == nil)
            // A late edit of another device does not undo the deletion.
            let late = await ana.mutation("put", id, "{\"title\":\"late\"}", kind: "Note")
            #expect(try await ana.send([late]).results == ["deleted"])
            // A second deletion keeps the content.
            let again = await ana.mutation("delete", id, kind: "Note")
            #expect(try await ana.send([again]).results[0].hasPrefix("accepted"))
            #expect(try deleted(id, fixture, realm) == content)
            // Two devices restore it.
            let first = restoring(await ana.mutation("put", id, Self.note, kind: "Note"))
            #expect(try await ana.send([first]).results[0].hasPrefix("accepted"))
            let second =
                "{\"sequence\":1,\"realm\":\"\(realm)\",\"op\":\"put\",\"kind\":\"Note\",\"id\":\"\(id)\","
                + "\"fields\":\(Self.note),\"restore\":true}"
            #expect(try await ana.send([second], client: other).results[0].hasPrefix("accepted"))
            let stored = try fixture.stored(realm)
            #expect(stored["Note/\(id.text)"]?.contains("Shopping") == true)
            #expect(stored["DeletedObject/\(id.text)"] == nil)
        }
    }

    /// The device queued both while it was offline: nothing has happened for other devices and recipients.
    @Test func deletionAndRestoreInOneRequestChangeNothing() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (realm, id) = (await ana.realm, UUID())
            _ = try await ana.send([await ana.mutation("put", id, Self.appointment, kind: "Appointment")])
            let before = try fixture.stored(realm)["Appointment/\(id.text)"]
            let results = try await ana.send([
                await ana.mutation("delete", id, kind: "Appointment"),
                restoring(await ana.mutation("put", id, Self.appointment, kind: "Appointment")),
            ]).results
            #expect(results.allSatisfy { $0.hasPrefix("accepted") })
            let stored = try fixture.stored(realm)
            #expect(stored["Appointment/\(id.text)"] == before && before != nil)
            #expect(stored["DeletedObject/\(id.text)"] == nil)
        }
    }

    /// Each object is written once in a transaction: here several mutations concern the same `DeletedObject`.
    @Test func mutationsOfOneDeletedObjectAreWrittenOnce() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let (realm, id) = (await ana.realm, UUID())
            let kinds = ["Note": Self.note, "Appointment": Self.appointment]
            func send(_ mutations: [String]) async throws -> [String] { try await ana.send(mutations).results }
            var puts: [String] = []
            for (kind, fields) in kinds { puts.append(await ana.mutation("put", id, fields, kind: kind)) }
            _ = try await send(puts)
            var deletes: [String] = []
            for kind in kinds.keys { deletes.append(await ana.mutation("delete", id, kind: kind)) }
            #expect(try await send(deletes).allSatisfy { $0.hasPrefix("accepted") })
            #expect(try deleted(id, fixture, realm) != nil)
            // The restore removes it, and so does its person.
            let results = try await send([
                restoring(await ana.mutation("put", id, Self.note, kind: "Note")),
                await ana.mutation("delete", id, kind: "DeletedObject"),
            ])
            #expect(results.allSatisfy { $0.hasPrefix("accepted") })
            #expect(try deleted(id, fixture, realm) == nil)
            // The person deletes the note and, at once, an older content of it for ever.
            _ = try await send([await ana.mutation("delete", id, kind: "Note")])
            _ = try await send([restoring(await ana.mutation("put", id, Self.note, kind: "Note"))])
            #expect(try deleted(id, fixture, realm) == nil)
            let put = await ana.mutation("put", id, Self.note, kind: "DeletedObject")
            #expect(try await send([put]) == ["operation-not-allowed"])
        }
    }

    @Test func restoreIsForPutsOfRestorableKinds() async throws {
        try await withGateway { fixture in
            let ana = try await fixture.device("ana@example.com")
            let id = UUID()
            let mutations = [
                restoring(await ana.mutation("put", id, Self.note, kind: "Note"), "1"),
                restoring(await ana.mutation("put", id, "{\"text\":\"a\"}")),
                restoring(await ana.mutation("patch", id, Self.note, kind: "Note")),
                restoring(await ana.mutation("put", id, Self.note, kind: "Note"), "false"),
            ]
            let results = try await ana.send(mutations).results
            #expect(results[..<3] == Array(repeating: "malformed-mutation", count: 3)[...])
            #expect(results[3].hasPrefix("accepted"))
        }
    }

    /// The owner sees what they no longer share, and who ended a share. What a recipient removes is not retained.
    @Test func endsAreRecordedInOwnRealms() async throws {
        try await withGateway { fixture in
            let (ana, ben) = (
                try await fixture.device("ana@example.com"), try await fixture.device("ben@example.com")
            )
            let (me, other) = (try fixture.person("ana@example.com"), try fixture.person("ben@example.com"))
            let (share, note) = (Share.id(of: me, with: other), UUID())
            try fixture.makeShare(share, owner: me, recipient: other, emails: ["ana@example.com", "ben@example.com"])
            try fixture.put(.note, note, Self.note, in: .share(share))
            let link = SharedItem.id(of: note, with: other)
            let fields = "{\"kind\":\"Note\",\"item\":\"\(note)\",\"recipient\":\"\(other)\"}"
            _ = try await ana.send([await ana.mutation("put", link, fields, kind: "SharedItem")])
            _ = try await ana.send([await ana.mutation("delete", link, kind: "SharedItem")])
            let content = try #require(try deleted(link, fixture, await ana.realm))
            #expect(content.sharedItem == SharedItem(kind: .note, item: note, recipient: other))
            #expect(content.reason == .cancelled)
            let path = RealmPath.share(share).description
            let results = try await ben.send([
                await ben.mutation("delete", note, kind: "Note", in: path),
                await ben.mutation("delete", share, kind: "Share", in: path),
            ]).results
            #expect(results.allSatisfy { $0.hasPrefix("accepted") })
            let (anas, bens) = (try fixture.stored(await ana.realm), try fixture.stored(await ben.realm))
            let key = "Share/\(share.text)"
            #expect(bens[key]?.contains("endedBy") == true && bens[key]?.contains(other.text) == true)
            #expect(anas[key] != nil && anas[key]?.contains("endedBy") == false)
            #expect(try fixture.stored(path).isEmpty && bens["DeletedObject/\(note.text)"] == nil)
        }
    }
}

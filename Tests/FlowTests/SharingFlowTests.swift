import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

extension FlowTests {
    /// The history of shares, undo and restore from devices that were offline, while the services are killed.
    @Test(.timeLimit(.minutes(15))) func endedSharesAreSeenAndRestoredDespiteKills() async throws {
        var options = LocalCluster.Options.quick
        options.services = [.relay, .gateway, .shareFanOut]
        try await withCluster("sharing", options) { cluster in
            let people = try await Self.addPeople(to: cluster)
            var ana = people.ana
            let ben = people.ben
            let recipient = try await Self.person(ben.phone)
            let (appointment, note) = (UUID(), UUID())
            let visit = Appointment(
                when: try #require(Timestamp("2015-03-30T08:00:00Z")), durationMinutes: 30, why: "Visit")
            let links = [appointment, note].map { SharedItem.id(of: $0, with: recipient) }
            // Offline: two items, both shared.
            try ana.enqueue(.put, .appointment, appointment, visit)
            try ana.enqueue(.put, .note, note, Note(title: "Shopping", body: "20 m"))
            let shared = [
                SharedItem(kind: .appointment, item: appointment, recipient: recipient),
                SharedItem(kind: .note, item: note, recipient: recipient),
            ]
            for (id, link) in zip(links, shared) { try ana.enqueue(.put, .sharedItem, id, link) }
            try await ana.send()
            try await Self.expect(ben, copies: 2, ended: 0, notices: 2)

            // The owner cancels one, and deletes the other, while the service is stopped.
            await cluster.kill9(.shareFanOut)
            try ana.enqueue(.delete, .sharedItem, links[0])
            try ana.enqueue(.delete, .note, note)
            try await ana.send()
            try cluster.start(.shareFanOut)
            let parts: [LocalCluster.Part] = [.shareFanOut, .relay]
            async let kills: Void = Killer(cluster: cluster, parts: parts, seed: 11, pause: .seconds(1)).kill(4)
            try await Self.expect(ben, copies: 0, ended: 2, notices: 4)
            try await kills
            let lines = try await ben.objects(.endedShare).values
            let past = lines.first { Self.item(of: $0) == appointment.text }
            #expect(past?["when"] as? String == "2015-03-30T08:00:00.000Z")
            #expect(past?["reason"] as? String == "cancelled")
            let other = lines.first { Self.item(of: $0) == note.text }
            #expect(other?["title"] as? String == "Shopping" && other?["reason"] as? String == "item-deleted")
            let deleted = try await ana.objects(.deletedObject)
            #expect(Set(deleted.keys) == Set((links + [note]).map(\.text)))

            // Two of the owner's devices undo both.
            var tablet = try await DefectPhone(cluster, "ana@example.com")
            try ana.enqueue(.put, .note, note, Note(title: "Shopping", body: "20 m"), restores: true)
            try tablet.enqueue(.put, .note, note, Note(title: "Shopping", body: "20 m"), restores: true)
            try ana.enqueue(.put, .sharedItem, links[0], shared[0], restores: true)
            async let more: Void = Killer(cluster: cluster, parts: parts, seed: 12, pause: .seconds(1)).kill(4)
            try await ana.send()
            try await tablet.send()
            try await Self.expect(ben, copies: 2, ended: 0, notices: 6)
            try await more
            let left = try await ana.objects(.deletedObject)
            #expect(left.isEmpty, "\(left)")
        }
    }

    /// Objects older than the environment's retention time are removed from both people's devices. Newer ones stay, and
    /// are removed when the time is shortened. A late undo of the owner's device restores the item without its sharing.
    @Test(.timeLimit(.minutes(10))) func historyOfSharesIsRemovedAfterItsRetention() async throws {
        var options = LocalCluster.Options.quick
        options.services = [.relay, .gateway, .shareFanOut]
        options.variables[.relay, default: [:]]["FIELDPOST_RETENTION_INTERVAL"] = "1s"
        try await withCluster("sharing-retention", options) { cluster in
            let people = try await Self.addPeople(to: cluster)
            var ana = people.ana
            let ben = people.ben
            let recipient = try await Self.person(ben.phone)
            let notes = [UUID(), UUID()]
            let links = notes.map { SharedItem.id(of: $0, with: recipient) }
            for (note, link) in zip(notes, links) {
                try ana.enqueue(.put, .note, note, Note(title: note.text))
                try ana.enqueue(
                    .put, .sharedItem, link, SharedItem(kind: .note, item: note, recipient: recipient))
            }
            try await ana.send()
            try await Self.expect(ben, copies: 2, ended: 0, notices: 2)
            for note in notes { try ana.enqueue(.delete, .note, note) }
            try await ana.send()
            try await Self.expect(ben, copies: 0, ended: 2, notices: 4)

            let old = Set([notes[0].text, links[0].text])
            let new = Set([notes[1].text, links[1].text])
            let deleted = try await ana.objects(.deletedObject)
            #expect(Set(deleted.keys) == old.union(new))
            try Self.age(cluster) { $0.contains(notes[0].text) ? 8 : 6 }
            try await Self.expectHistory(ana, ben, deleted: new, ended: [notes[1].text])
            try await cluster.runCommand(["environment", "edit", "outside", "--deleted-retention", "5"])
            try await Self.expectHistory(ana, ben, deleted: [], ended: [])

            // Without the retained link, sharing the item again is the owner's decision.
            try ana.enqueue(.put, .note, notes[1], Note(title: "late"), restores: true)
            try await ana.send()
            let (restored, shared) = (try await ana.objects(.note), try await ana.objects(.sharedItem))
            #expect(Array(restored.keys) == [notes[1].text] && shared.isEmpty, "\(shared)")
        }
    }

    /// Makes the objects of the history older, as if time had passed.
    ///
    /// - Parameter days: The age of an object by its fields.
    private static func age(_ cluster: LocalCluster, by days: (String) -> Int64) throws {
        var connection = try Connection(cluster.conninfo)
        let rows = try connection.run(
            """
            SELECT environment_id, realm_id, kind, id, fields FROM store.object
            WHERE kind = ANY (\([Kind.deletedObject, .endedShare])) AND NOT deleted
            """)
        for (environment, realm, number, id, fields) in try rows.decode(
            EnvironmentID.self, Int32.self, Int16.self, UUID.self, CanonicalJSON.self)
        {
            let kind = try #require(Kind(number: number))
            let text = String(decoding: fields.bytes, as: UTF8.self).lowercased() + id.text
            let time = Timestamp.now().adding(.seconds(-86_400 * days(text)))
            let name = kind == .endedShare ? "endedAt" : "deletedAt"
            var batch = WriteBatch(environment: environment)
            batch.put(
                ObjectKey(realm: realm, kind: kind, id: id),
                try fields.merging(CanonicalJSON(encoding: [name: time])), decision: 0)
            _ = try batch.commit(on: &connection)
        }
    }

    /// The id of an `EndedShare`'s item.
    private static func item(of line: [String: Any]) -> String? { (line["item"] as? String)?.lowercased() }

    /// Waits until the devices have exactly these `DeletedObject`s, by id, and `EndedShare`s, by item.
    private static func expectHistory(
        _ ana: DefectPhone, _ ben: DefectPhone, deleted: Set<String>, ended: Set<String>
    ) async throws {
        try await eventually("the history has \(deleted) and \(ended)", within: .seconds(120)) {
            let (mine, lines) = (try await ana.objects(.deletedObject), try await ben.objects(.endedShare))
            let items = Set(lines.values.compactMap(Self.item))
            return Set(mine.keys) == deleted && items == ended ? nil : "\(mine.keys), \(items)"
        }
    }

    /// Adds an environment with a retention of 7 days, and logs two people in.
    private static func addPeople(to cluster: LocalCluster) async throws -> (ana: DefectPhone, ben: DefectPhone) {
        try await cluster.runCommand([
            "environment", "add", "outside", "--domain", "example.com", "--issuer", cluster.identityURL,
            "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "none",
            "--deleted-retention", "7",
        ])
        let ana = try await DefectPhone(cluster, "ana@example.com")
        let ben = try await DefectPhone(cluster, "ben@example.com")
        for phone in [ana.phone, ben.phone] {
            try await eventually("the gateway has the environment") {
                let status = try await phone.status()
                return status == 200 ? nil : "\(status)"
            }
        }
        return (ana, ben)
    }

    /// Waits until the recipient sees these numbers of copies, ended shares and notices.
    private static func expect(_ ben: DefectPhone, copies: Int, ended: Int, notices: Int) async throws {
        let expected = [copies, ended, notices]
        try await eventually("the recipient sees \(expected)", within: .seconds(120)) {
            let items = try await ben.objects(.appointment).count + ben.objects(.note).count
            let found = [items, try await ben.objects(.endedShare).count, try await ben.objects(.notice).count]
            return found == expected ? nil : "\(found)"
        }
    }

    /// The id of a device's `Person`.
    static func person(_ phone: IntegrationPhone) async throws -> UUID {
        let response = try await phone.client.send(
            Request("GET", phone.cluster.gatewayURL + "/v1/realms", headers: phone.headers))
        let json = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
        return try #require((json?["person"] as? String).flatMap { UUID(uuidString: $0) })
    }
}

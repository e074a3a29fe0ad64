import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import TestSupport
import Testing

extension FlowTests {
    /// The history of shares, undo and restore from devices that were offline, while the services are killed.
    @Test(.timeLimit(.minutes(15))) func endedSharesAreSeenAndRestoredDespiteKills() async throws {
        var options = LocalCluster.Options.quick
        options.services = [.relay, .gateway, .shareFanOut]
        try await withCluster("sharing", options) { cluster in
            try await cluster.runCommand([
                "environment", "add", "outside", "--domain", "example.com", "--issuer", cluster.identityURL,
                "--audience", "fieldpost", "--jwks-url", cluster.identityURL + "/jwks", "--backend", "none",
                "--deleted-retention", "7",
            ])
            var ana = try await DefectPhone(cluster, "ana@example.com")
            let ben = try await DefectPhone(cluster, "ben@example.com")
            for phone in [ana.phone, ben.phone] {
                try await eventually("the gateway has the environment") {
                    let status = try await phone.status()
                    return status == 200 ? nil : "\(status)"
                }
            }
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
            let past = lines.first { $0["item"] as? String == appointment.text }
            #expect(past?["when"] as? String == "2015-03-30T08:00:00.000Z")
            #expect(past?["reason"] as? String == "cancelled")
            let other = lines.first { $0["item"] as? String == note.text }
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

import Essentials
import Foundation
import Integration
import Model
import Testing

// The catalogue of Integration quotes these functions.

/// Copies the site of each inspection into the field `place`, which people cannot write.
func copySites(of environment: String, gateway: IntegrationClient, settings: KafkaSettings) async throws {
    let worker = TopicWorker(
        group: "site-copies", topics: ["own.\(environment).inspections"], settings: settings
    ) { message in
        guard let mutation = try siteCopy(for: message) else { return }
        // With the position, a repeated message has no second effect, and a later state is not overwritten.
        let rejection = try await gateway.send(mutation, in: message.subject.realm)
        if let rejection, !rejection.isSuperseded { throw rejection }
    }
    try await worker.runUntilSignal()
}

/// Returns the change of an inspection; `nil` if it was deleted, or is up to date.
func siteCopy(for message: TopicMessage) throws -> Mutation? {
    struct Inspection: Codable {
        var site: String?
        var place: String?
    }
    guard let json = message.fields else { return nil }
    let inspection = try JSONDecoder().decode(Inspection.self, from: Data(json))
    guard inspection.place != inspection.site else { return nil }
    let fields = try JSONEncoder().encode(["place": inspection.site])
    return Mutation(
        operation: .patch, kind: message.subject.kind, id: message.subject.id, fields: Array(fields),
        position: message.position)
}

@Suite struct IntegrationSampleTests {
    private func message(_ fields: String?) throws -> TopicMessage {
        let subject = try #require(EventSubject("/users/ana@example.com/Inspection/\(UUID().text)"))
        return TopicMessage(
            topic: "own.acme.inspections", subject: subject, position: 7, fields: fields.map { Array($0.utf8) })
    }

    @Test func outdatedCopyIsWrittenAtTheMessagesPosition() throws {
        let outdated = try message(#"{"site":"Roof","place":"Cellar"}"#)
        let mutation = try #require(try siteCopy(for: outdated))
        #expect(mutation.fields == Array(#"{"place":"Roof"}"#.utf8) && mutation.position == 7)
        #expect(mutation.id == outdated.subject.id && mutation.kind.rawValue == "Inspection")
        #expect(try siteCopy(for: message(#"{"site":"Roof","place":"Roof"}"#)) == nil)
        #expect(try siteCopy(for: message(nil)) == nil)
    }
}

import Backends
import FoundationEssentials
import HTTP
import Model
import Postgres
import Realms
import Secrets
import TestSupport
import Testing

@testable import Pipeline
@testable import RealmInitializer

/// What the handler makes of registrations in PostgreSQL.
@Suite struct RealmHandlerTests {
    @Test func aRegistrationThatDoesNotDecodeIsDeadAloneAndTheOthersGoOn() throws {
        var acme = try TestEnvironment()
        let (good, strange) = (UUID(), UUID())
        let objects = [
            (strange, #"{"userId": 7, "isInitialized": false}"#),
            (good, #"{"path": "/users/ana@example.com", "userId": "ana@example.com", "isInitialized": true}"#),
        ]
        try acme.put(objects, .realms, into: .users)

        let client = Client()
        defer { client.shutDown() }
        var handler = RealmHandler(
            RealmFetcher(client: client, callMax: .seconds(10), secrets: try SecretBox([]), entryDays: 1))
        let inputs = objects.map { id, _ in
            Input<RealmFetcher.Found>(
                environment: acme.id, subject: EventSubject(realm: .users, kind: .realms, id: id), origin: .event,
                attemptCount: 0)
        }
        var decided = WriteBatch(environment: acme.id)
        let nexts = try handler.decide(inputs, in: acme.id, batch: &decided, on: &acme.connection)
        try #require(nexts.count == 2)
        if case .dead(let reason) = nexts[0] {
            #expect(reason.contains("Realms \(strange.text) does not decode"))
        } else {
            Issue.record("\(nexts[0])")
        }
        if case .finished = nexts[1] {} else { Issue.record("\(nexts[1])") }
    }
}

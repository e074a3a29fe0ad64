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
        var connection = try Connection(try makeFoundationDatabase())
        let rows = try connection.run("INSERT INTO realm.environment (name) VALUES ('acme') RETURNING id")
        let environment = EnvironmentID(rawValue: try rows[0].value(0))
        try connection.run(
            """
            INSERT INTO backend.connection (environment_id, kind, url, user_name, password_variable)
            VALUES (\(environment.rawValue), 'sap', 'http://127.0.0.1:1', 'user', 'NO_SUCH_VARIABLE')
            """)
        var directory = RealmDirectory()
        let users = try #require(try directory.id(of: .users, in: environment, create: true, on: &connection))
        let (good, strange) = (UUID(), UUID())
        var batch = WriteBatch(environment: environment)
        let objects = [
            (strange, #"{"userId": 7, "isInitialized": false}"#),
            (good, #"{"path": "/users/ana@example.com", "userId": "ana@example.com", "isInitialized": true}"#),
        ]
        for (id, json) in objects {
            batch.put(ObjectKey(realm: users, kind: .realms, id: id), JSONBytes(json), decision: 0)
        }
        _ = try batch.commit(on: &connection)

        let client = Client()
        defer { client.shutDown() }
        var handler = RealmHandler(
            RealmFetcher(client: client, callMax: .seconds(10), secrets: try SecretBox([]), entryDays: 1))
        let inputs = objects.map { id, _ in
            Input<RealmFetcher.Found>(
                environment: environment, subject: EventSubject(realm: .users, kind: .realms, id: id), origin: .event,
                attemptCount: 0)
        }
        var decided = WriteBatch(environment: environment)
        let nexts = try handler.decide(inputs, in: environment, batch: &decided, on: &connection)
        try #require(nexts.count == 2)
        if case .dead(let reason) = nexts[0] {
            #expect(reason.contains("Realms \(strange.text) does not decode"))
        } else {
            Issue.record("\(nexts[0])")
        }
        if case .finished = nexts[1] {} else { Issue.record("\(nexts[1])") }
    }
}

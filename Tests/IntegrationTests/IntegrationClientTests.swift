import Essentials
import Foundation
import Integration
import Logging
import Model
import Synchronization
import TestSupport
import Testing

/// The client against a server whose responses a test controls.
@Suite(.ownThreads) struct IntegrationClientTests {
    private let realm: RealmPath
    private let patch: Mutation

    init() throws {
        realm = try .user("ana@example.com")
        let kind = try #require(Kind(named: "Inspection"))
        patch = Mutation(
            operation: .patch, kind: kind, id: UUID(), fields: Array(#"{"receipt":null}"#.utf8), position: 7)
    }

    /// A request's client and number.
    private struct Batch: Decodable, Equatable {
        struct Numbered: Decodable, Equatable {
            let sequence: Int
            let op: String
            let kind: String
            let position: Int?
        }
        let clientId: UUID
        let mutations: [Numbered]

        init(_ request: LoopbackServer.Request) throws {
            self = try JSONDecoder().decode(Batch.self, from: Data(request.body))
        }
    }

    private static let accepted = Array(#"{"results":[{"sequence":1,"accepted":{"position":8}}]}"#.utf8)

    /// Runs `body` with a server that responds with `actions`, then accepts.
    private func withServer(
        _ actions: [LoopbackServer.Action], logger: Logger = LogCapture().logger,
        _ body: (LoopbackServer, IntegrationClient) async throws -> Void
    ) async throws {
        let rest = Mutex(actions[...])
        let server = LoopbackServer { _ in rest.withLock { $0.popFirst() } ?? .answer(body: Self.accepted) }
        defer { server.stop() }
        try await body(server, try IntegrationClient(url: server.url, key: "fpk_1", logger: logger))
    }

    @Test func mutationIsRetriedWithItsNumber() async throws {
        let limited = LoopbackServer.Action.answer(status: 429, headers: ["Retry-After: 2"])
        try await withServer([limited, .hangUp, .answer(status: 503)]) { server, client in
            let start = ContinuousClock.now
            #expect(try await client.send(patch, in: realm) == nil)
            #expect(ContinuousClock.now - start >= .seconds(2))
            let bodies = server.requests.map(\.body)
            #expect(bodies.count == 4 && Set(bodies).count == 1)
            #expect(server.requests[0].header("authorization") == "Bearer fpk_1")
            let first = try Batch(server.requests[0])
            #expect(first.mutations == [.init(sequence: 1, op: "patch", kind: "Inspection", position: 7)])
            _ = try await client.send(patch, in: realm)
            let second = try Batch(server.requests[4])
            #expect(second.clientId == first.clientId && second.mutations[0].sequence == 2)
        }
    }

    @Test func rejectionIsReturned() async throws {
        let body = """
            {"results":[{"sequence":1,"rejected":{"type":"urn:fieldpost:problem:version-conflict","detail":"at 9"}}]}
            """
        try await withServer([.answer(body: Array(body.utf8))]) { _, client in
            let rejection = try await client.send(patch, in: realm)
            #expect(rejection?.code == "version-conflict" && rejection?.detail == "at 9")
        }
    }

    @Test func refusalIsAnErrorAndItsNumberIsNotReused() async throws {
        try await withServer([.answer(status: 401, body: Array("no key".utf8))]) { server, client in
            await #expect(throws: IntegrationError.refused(status: 401, detail: "no key")) {
                try await client.send(patch, in: realm)
            }
            #expect(server.requests.count == 1)
            _ = try await client.send(patch, in: realm)
            let batches = try server.requests.map(Batch.init)
            #expect(batches[0].clientId != batches[1].clientId && batches[1].mutations[0].sequence == 1)
        }
    }

    /// After a restore of the database, the gateway does not have the client's numbers.
    @Test func mutationAfterAGapGetsAnotherClient() async throws {
        let gap = Array(#"{"type":"urn:fieldpost:problem:sequence-gap","expectedSequence":1}"#.utf8)
        try await withServer([.answer(body: Self.accepted), .answer(status: 409, body: gap)]) { server, client in
            for _ in 0..<3 { #expect(try await client.send(patch, in: realm) == nil) }
            let batches = try server.requests.map(Batch.init)
            #expect(batches.map { $0.mutations[0].sequence } == [1, 2, 1, 2])
            #expect(Set(batches.map(\.clientId)).count == 2 && batches[0].clientId == batches[1].clientId)
        }
    }

    @Test func cancellationEndsRetries() async throws {
        let limited = LoopbackServer.Action.answer(status: 429, headers: ["Retry-After: 60"])
        let log = LogCapture(level: .warning)
        try await withServer([limited], logger: log.logger) { _, client in
            let call = Task { try await client.download(UUID()) }
            let end = ContinuousClock.now + patienceMax
            while log.errorEvents.isEmpty {
                try #require(ContinuousClock.now < end, "the call waits")
                try await Task.sleep(for: .milliseconds(5))
            }
            call.cancel()
            await #expect(throws: CancellationError.self) { try await call.value }
        }
    }

    @Test(arguments: [
        ("gateway", "k"), ("ftp://host", "k"), ("http://", "k"), ("http://host/v1", "k"), ("https://host?a", "k"),
        ("http://host", ""), ("http://host", "a\r\nb"), ("http://hö.example", "k"),
    ])
    func unusableSettingIsAnError(url: String, key: String) {
        #expect {
            _ = try IntegrationClient(url: url, key: key)
        } throws: { error in
            guard case .invalidSetting(let text) = error as? IntegrationError else { return false }
            return !text.contains("\n") && (key == "k") == text.contains(url)
        }
    }

    @Test func kafkaSettingsAreRead() throws {
        let environment = [
            "FIELDPOST_KAFKA_BROKERS": "b:1", "FIELDPOST_KAFKA_SECURITY_PROTOCOL": "SASL_SSL", "FIELDPOST_KEY": "k",
        ]
        let settings = try KafkaSettings(environment: environment)
        #expect(settings == KafkaSettings(brokers: "b:1", properties: ["security.protocol": "SASL_SSL"]))
        let invalid = IntegrationError.invalidSetting(
            #"FIELDPOST_KAFKA_NO_SUCH is "1": No such configuration property: "no.such""#)
        #expect(throws: invalid) { try KafkaSettings(environment: ["FIELDPOST_KAFKA_NO_SUCH": "1"]) }
    }
}

import DeviceClient
import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

// docs/apps/device-client.md quotes the code from here to the mark.

/// An app that stores a `DeviceState`, reads the stream and sends queued mutations.
actor App {
    private(set) var state: DeviceState
    let file: URL
    let server: any AppServer

    init(file: URL, server: any AppServer) throws {
        (self.file, self.server) = (file, server)
        let stored = try? Data(contentsOf: file)
        state = try stored.map { try JSONDecoder().decode(DeviceState.self, from: $0) } ?? DeviceState(clientID: UUID())
    }

    /// Queues a user's change, which is shown at once and sent when the device is online.
    func change(_ mutation: Mutation, in realm: RealmPath) throws {
        _ = try state.enqueue(mutation, in: realm)
        try store()
    }

    /// Reads one stream until it ends. Call it again with exponential backoff.
    func follow() async throws {
        for try await bytes in try await server.sync(state.syncRequest(isLive: true)) {
            guard let line = try SyncLine.read(bytes) else { continue }  // an unknown line of a newer server
            _ = state.take(line)  // display the objects in `changed`, from `state[realm, object]`
        }
        try store()
    }

    /// Sends queued mutations, one request at a time. Call it after `change`, and while `state.queue.hasToSend`.
    func send() async throws {
        while let request = state.nextRequest() {
            try store()  // store before sending
            let (status, body) = try await server.mutate(request.body)
            guard let response = try QueueResponse.read(status: status, body: body) else { return }  // retry unchanged
            let changes = state.take(response, to: request, newClientID: UUID())
            for queued in changes.answers where queued.isRejected { print("rejected: \(queued.mutation)") }
            guard changes.madeProgress else { return }
        }
    }

    private func store() throws { try JSONEncoder().encode(state).write(to: file, options: .atomic) }
}

/// The two calls of the device API, implemented with URLSession or another client.
protocol AppServer: Sendable {
    func sync(_ body: [UInt8]) async throws -> AsyncStream<[UInt8]>
    func mutate(_ body: [UInt8]) async throws -> (status: Int, body: [UInt8])
}

// The mark.

@Suite(.ownThreads) struct ExampleAppTests {
    private struct Server: AppServer {
        let lines: [String]

        func sync(_ body: [UInt8]) async throws -> AsyncStream<[UInt8]> {
            AsyncStream { continuation in
                for line in lines { continuation.yield(Array(line.utf8)) }
                continuation.finish()
            }
        }

        func mutate(_ body: [UInt8]) async throws -> (status: Int, body: [UInt8]) {
            (200, Array(#"{"results":[{"sequence":1,"accepted":{"position":8}}],"expectedSequence":2}"#.utf8))
        }
    }

    @Test func documentQuotesTheExample() throws {
        let file = URL(fileURLWithPath: #filePath)
        let source = String(decoding: try Data(contentsOf: file), as: UTF8.self)
        let start = try #require(source.firstRange(of: "/// An app that stores a `DeviceState`")?.lowerBound)
        let end = try #require(source.firstRange(of: "\n// The mark.")?.lowerBound)
        let root = file.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let document = try Data(contentsOf: root.appendingPathComponent("docs/apps/device-client.md"))
        #expect(String(decoding: document, as: UTF8.self).contains(source[start..<end]))
    }

    @Test func exampleShowsAndStoresChanges() async throws {
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("device-\(UUID().text).json")
        defer { try? FileManager.default.removeItem(at: file) }
        let realm = try RealmPath.user("ana@example.com")
        let entry = ObjectID(kind: .timeEntry, id: UUID())
        let server = Server(lines: [
            #"{"open":{"realm":"\#(realm)","reset":true}}"#, #"{"weather":{}}"#,
            """
            {"objects":{"realm":"\(realm)","cursor":"1:7:0","list":[{"kind":"TimeEntry","id":"\(entry.id.text)",\
            "position":7,"fields":{"text":"a"}}]}}
            """,
            #"{"checkpoint":{"position":7,"cursor":"1:7:7"}}"#,
        ])
        let app = try App(file: file, server: server)
        try await app.follow()
        let patch = Mutation(operation: .patch, kind: .timeEntry, id: entry.id, fields: Array(#"{"text":"b"}"#.utf8))
        try await app.change(patch, in: realm)
        try await app.send()
        let again = try App(file: file, server: server)
        let shown = await again.state[realm, entry]
        #expect(shown?.fields == Array(#"{"text":"b"}"#.utf8))
        // Killed before it stored the result: it sends the request again and gets the same result.
        #expect(await again.state.queue.count == 1)
        try await again.send()
        #expect(await again.state.queue.count == 0)
    }
}

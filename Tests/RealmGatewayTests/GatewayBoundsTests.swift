import Foundation
import HTTPClient
import Kafka
import KeyedWorker
import Logging
import Model
import NIOCore
import NIOPosix
import ObjectStore
import Postgres
import Synchronization
import TestSupport
import Testing

@testable import ChangeRelay
@testable import RealmGateway

/// The gateway at its limits, and trace propagation.
@Suite(.ownThreads) struct GatewayBoundsTests {
    /// `sync.lag.max`: a device that does not read is disconnected; one that reads is not.
    @Test func deviceThatStopsReadingIsDisconnected() async throws {
        var limits = GatewayLimits()
        limits.lagMax = .seconds(10)
        try await withGateway(limits: limits) { fixture in
            let hasReceived = Flag()
            let reader = try await RawStream(fixture, "ana@example.com", hearsLast: hasReceived)
            let stuck = try await RawStream(fixture, "ana@example.com")
            // Otherwise a failure would wait for them.
            defer {
                reader.close()
                stuck.close()
            }
            let hub = fixture.gateways[0].hub
            try await eventually("both streams are open") { hub.count == 2 }
            let realm = try fixture.realm(RealmPath.user("ana@example.com"))
            // Then a write to it blocks.
            try fixture.writeMoreThanBuffersHold(realm)
            try await eventually("the stream without a reader is closed") { hub.count == 1 }
            let last = ObjectKey(realm: realm, kind: .timeEntry, id: UUID())
            try fixture.write { $0.put(last, try CanonicalJSON("{\"text\":\"last\"}"), decision: 0) }
            try await eventually("the other stream still gets changes") { hasReceived.isUp }
        }
    }

    /// Streams of integrations and downloads are not counted.
    @Test func liveDevicesAreCountedByEnvironment() async throws {
        try await withGateway { fixture in
            let hub = fixture.gateways[0].hub
            let books = GatewayDevice(fixture, bearer: try fixture.addIntegration("books"))
            let reading = Task { try await books.follow(naming: ["/users"]) }
            defer { reading.cancel() }
            try await books.wait("live") { $0.checkpointCount >= 1 }
            let phone = try await fixture.device("ana@example.com")
            try await phone.sync()
            #expect(hub.deviceCounts.isEmpty)
            let count = await phone.checkpointCount
            let following = Task { try await phone.follow() }
            try await phone.wait("live") { $0.checkpointCount > count }
            #expect(hub.deviceCounts == [fixture.environment: 1])
            following.cancel()
            try await eventually("its stream has ended") { hub.deviceCounts.isEmpty }
        }
    }

    /// A shutdown does not wait for devices.
    @Test(.timeLimit(.minutes(10))) func deviceThatStopsReadingDoesNotDelayAShutdown() async throws {
        let stuck = Mutex<RawStream?>(nil)
        defer { stuck.withLock { $0?.close() } }
        try await withGateway { fixture in
            let stream = try await RawStream(fixture, "ana@example.com")
            stuck.withLock { $0 = stream }
            let realm = try fixture.realm(RealmPath.user("ana@example.com"))
            // A write is blocked when the shutdown starts.
            try fixture.writeMoreThanBuffersHold(realm)
            let hub = fixture.gateways[0].hub
            try await eventually("its stream is open") { hub.count == 1 }
        }
    }

    /// `mutations.waiting.max`: a request to a full queue gets 503, is not applied, and may be retried.
    @Test func fullMutationQueueReturnsBusy() async throws {
        var limits = GatewayLimits()
        limits.waitingMax = 1
        try await withGateway(limits: limits) { fixture in
            // The first login of a person writes; it finishes before the counter is locked.
            let first = try await GatewayDevice(fixture, "ana@example.com")
            #expect(try await first.send([await first.mutation("put", UUID(), "{}")]).status == 200)
            // The environment's counter is locked, which blocks a transaction of the gateway.
            let lock = try await HeldLocks(fixture, countersOf: [1])
            defer { lock.release() }
            var phones: [GatewayDevice] = []
            for _ in 0..<5 { phones.append(try await GatewayDevice(fixture, "ana@example.com")) }
            let responses = try await withThrowingTaskGroup(of: (Int, GatewayResponse).self) { group in
                for (index, phone) in phones.enumerated() {
                    group.addTask {
                        (index, try await phone.sendOnce([await phone.mutation("put", UUID(), "{\"text\":\"x\"}")]))
                    }
                }
                var responses: [(Int, GatewayResponse)] = []
                for try await response in group {
                    responses.append(response)
                    // One request is in the blocked transaction, and at most one is queued.
                    if responses.count == 3 { lock.release() }
                }
                return responses
            }
            try lock.wait()
            let busy = responses.filter { $0.1.status == 503 }
            #expect(busy.count >= 3 && busy.count < 5)
            #expect(busy.allSatisfy { $0.1.problem == "busy" && $0.1.headers["Retry-After"] == "1" })
            #expect(responses.filter { $0.1.status == 200 }.count == 5 - busy.count)
            let phone = phones[try #require(busy.first).0]
            let again =
                "{\"sequence\":1,\"realm\":\"\(await phone.realm)\",\"op\":\"put\",\"kind\":\"TimeEntry\","
                + "\"id\":\"\(UUID())\",\"fields\":{}}"
            #expect(try await phone.send([again]).results.first?.hasPrefix("accepted") == true)
        }
    }

    /// More environments are locked than there are commit connections: mutations of another environment make progress.
    @Test func lockedEnvironmentsDoNotBlockOthers() async throws {
        var limits = GatewayLimits()
        limits.commitPoolSize = 2
        limits.lockedMax = .seconds(600)
        try await withGateway(limits: limits) { fixture in
            var devices: [GatewayDevice] = []
            for id in 2...6 { devices.append(GatewayDevice(fixture, bearer: try fixture.addEnvironment(Int32(id)))) }
            let send: @Sendable (GatewayDevice) async throws -> GatewayResponse = { device in
                try await device.send([
                    await device.mutation("put", UUID(), "{\"text\":\"x\"}", in: "/users/eva@example.com")
                ])
            }
            for device in devices { #expect(try await send(device).status == 200) }
            let lock = try await HeldLocks(fixture, countersOf: [2, 3, 4, 5])
            defer { lock.release() }
            let isCompleted = Flag()
            try await withThrowingTaskGroup(of: GatewayResponse.self) { group in
                for device in devices[..<4] {
                    group.addTask {
                        let response = try await send(device)
                        isCompleted.raise()
                        return response
                    }
                }
                for _ in 0..<30 { #expect(try await send(devices[4]).status == 200) }
                #expect(!isCompleted.isUp)
                lock.release()
                for try await response in group { #expect(response.status == 200) }
            }
            try lock.wait()
        }
    }

    /// While one environment's page takes long, live devices of another get their changes.
    @Test func slowEnvironmentDoesNotDelayLiveDevicesOfAnother() async throws {
        try await withGateway { fixture in
            let keys = [try fixture.addEnvironment(2), try fixture.addEnvironment(3)]
            // Reading the first environment's change log waits for a lock.
            try fixture.withDatabase { connection in
                try connection.runScript(
                    """
                    CREATE FUNCTION public.wait(environment int) RETURNS boolean LANGUAGE plpgsql
                    SET lock_timeout = 0 AS $$ BEGIN
                        IF environment = 2 THEN PERFORM pg_advisory_xact_lock_shared(42); END IF;
                        RETURN true;
                    END $$;
                    ALTER TABLE store.change RENAME TO change_rows;
                    CREATE VIEW store.change AS SELECT * FROM store.change_rows WHERE public.wait(environment_id)
                    """)
            }
            let devices = keys.map { GatewayDevice(fixture, bearer: $0) }
            let following = devices.map { device in Task { try await device.follow(naming: ["/users"]) } }
            defer { for task in following { task.cancel() } }
            for device in devices { try await device.wait("live") { $0.checkpointCount >= 1 } }
            let lock = try await HeldLocks(fixture, ["SELECT pg_advisory_xact_lock(42)"])
            defer { lock.release() }
            func write(_ environment: Int32) throws {
                try fixture.withDatabase { connection in
                    var directory = RealmDirectory()
                    let id = EnvironmentID(rawValue: environment)
                    let realm = try directory.id(of: .users, in: id, create: true, on: &connection)
                    var batch = WriteBatch(environment: id)
                    batch.put(
                        ObjectKey(realm: try #require(realm), kind: .realms, id: UUID()), try CanonicalJSON("{}"),
                        decision: 0)
                    _ = try batch.commit(on: &connection)
                }
            }
            try write(2)
            try await eventually("its page waits") {
                try fixture.withDatabase { connection in
                    try connection.run(.lockWaits).count > 0
                }
            }
            try write(3)
            try await devices[1].wait("the other's change") { $0.shown("/users").count == 1 }
            #expect(await devices[0].shown("/users").isEmpty)
            lock.release()
            try await devices[0].wait("the slow one's change") { $0.shown("/users").count == 1 }
        }
    }

    @Test func mutationsTraceReachesItsEvent() async throws {
        try await withGateway { fixture in
            let traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
            let phone = try await GatewayDevice(fixture, "ana@example.com")
            let id = UUID()
            var request = phone.request(
                "POST", "/v1/mutations",
                "{\"clientId\":\"\(phone.clientID)\",\"mutations\":[\(await phone.mutation("put", id, "{}"))]}")
            request.headers.append(("traceparent", traceparent))
            #expect(GatewayResponse(try await fixture.client.send(request)).status == 200)

            try fixture.withDatabase { _ = try $0.run("UPDATE realm.relay SET position = 0") }
            let partitions = Dictionary(uniqueKeysWithValues: Topics.all.map { ($0.name, $0.partitions) })
            let database = fixture.database
            try await withMockCluster(topics: partitions) { cluster in
                var relay = try Relay(
                    conninfo: database, brokers: cluster.address, properties: [:],
                    logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
                var consumer = try Consumer(brokers: cluster.address, group: "reader", topics: [Topics.entry.name])
                var messages: [Message] = []
                let end = ContinuousClock.now + patienceMax
                while messages.isEmpty, ContinuousClock.now < end {
                    _ = try relay.step(waitMax: .milliseconds(5))
                    messages = try consumer.nextBatch(countMax: 10, waitMax: .milliseconds(20))
                }
                let message = try #require(messages.first)
                #expect(message.headerText("ce_subject")?.hasSuffix(id.uuidString.lowercased()) == true)
                #expect(message.headerText("traceparent") == traceparent)
            }
        }
    }
}

/// Holds locks like a session with a stuck transaction.
final class HeldLocks: Sendable {
    private let (isLocked, mayEnd) = (Flag(), Flag())
    private let holder: BackgroundThread

    convenience init(_ fixture: GatewayFixture, countersOf environments: [Int32]) async throws {
        try await self.init(
            fixture, environments.map { "UPDATE realm.environment SET position = position WHERE id = \($0)" })
    }

    init(_ fixture: GatewayFixture, _ statements: [Statement]) async throws {
        let (isLocked, mayEnd) = (isLocked, mayEnd)
        holder = BackgroundThread {
            var connection = try Connection(fixture.database)
            try connection.transaction { transaction in
                try transaction.run(statements)
                isLocked.raise()
                while !mayEnd.isUp { try transaction.run("SELECT pg_sleep(0.01)") }
            }
        }
        try await eventually("the locks are held") { isLocked.isUp }
    }

    func release() { mayEnd.raise() }

    /// Waits until the locks are released.
    func wait() throws { try holder.wait() }
}

/// A flag that tasks and threads share.
final class Flag: Sendable {
    private let state = Atomic<Bool>(false)

    var isUp: Bool { state.load(ordering: .acquiring) }
    func raise() { state.store(true, ordering: .releasing) }
}

/// Waits for a condition on the server.
func eventually(_ what: String, _ condition: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + patienceMax
    while try await !condition() {
        try #require(ContinuousClock.now < deadline, "timeout: \(what)")
        try await Task.sleep(for: .milliseconds(5))
    }
}

extension GatewayFixture {
    /// Writes more than the kernel's buffers hold for a stream without a reader.
    fileprivate func writeMoreThanBuffersHold(_ realm: Int32) throws {
        let text = String(repeating: "x", count: 60_000)
        for _ in 0..<40 {
            try write { batch in
                for _ in 0..<10 {
                    let key = ObjectKey(realm: realm, kind: .timeEntry, id: UUID())
                    batch.put(key, try CanonicalJSON("{\"text\":\"\(text)\"}"), decision: 0)
                }
            }
        }
    }
}

/// A live stream whose client sends its request and never reads, or reads and discards.
private struct RawStream {
    private let channel: any Channel

    /// - Parameter flag: Raised when the text `last` arrives; without it nothing is read.
    init(_ fixture: GatewayFixture, _ email: String, hearsLast flag: Flag? = nil) async throws {
        let token = try await fixture.keys.token(email)
        let body = "{\"live\":true}"
        let request =
            "POST /v1/sync HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(token)\r\n"
            + "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .channelOption(.autoRead, value: flag != nil)
            .channelOption(.socketOption(.so_rcvbuf), value: flag == nil ? 4_096 : 1 << 20)
            .channelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let flag { try channel.pipeline.syncOperations.addHandler(TextDetector(flag)) }
                }
            }
            .connect(host: "127.0.0.1", port: fixture.ports[0]).get()
        try await channel.writeAndFlush(ByteBuffer(string: request))
    }

    func close() { channel.close(promise: nil) }
}

private final class TextDetector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let flag: Flag
    /// The end of the previous bytes: the text may arrive in two pieces.
    private var tail: [UInt8] = []

    init(_ flag: Flag) { self.flag = flag }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let bytes = tail + unwrapInboundIn(data).readableBytesView.suffix(4_096)
        if String(decoding: bytes, as: UTF8.self).contains("\"last\"") { flag.raise() }
        tail = Array(bytes.suffix(8))
    }
}

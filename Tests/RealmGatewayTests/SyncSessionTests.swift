import Access
import Essentials
import Foundation
import HTTPTypes
import Hummingbird
import Logging
import Model
import NIOCore
import ObjectStore
import Postgres
import Tenants
import TestSupport
import Testing

@testable import RealmGateway

/// The output of a live session.
@Suite(.ownThreads) struct SyncSessionTests {
    @Test func deliveryIsSentOnce() async throws {
        try await withSession { session, fixture in
            let id = UUID()
            let delivery = try fixture.delivery(of: .timeEntry, id)
            guard case .write(let lines, false) = await session.output(for: .deliveries([delivery])) else {
                Issue.record("the delivery is not sent")
                return
            }
            let texts = lines.map { String(buffer: $0) }
            #expect(texts.count == 2 && texts[0].contains(id.text) && texts[1].hasPrefix("{\"checkpoint\""))
            guard case .write(let again, false) = await session.output(for: .deliveries([delivery])) else {
                Issue.record("the repeated delivery has no output")
                return
            }
            #expect(again.isEmpty)
        }
    }

    @Test func permissionChangeRequiresASnapshotFirst() async throws {
        try await withSession { session, fixture in
            let delivery = try fixture.delivery(of: .user, UUID())
            guard case .write(let lines, true) = await session.output(for: .deliveries([delivery])) else {
                Issue.record("the delivery is sent without a snapshot")
                return
            }
            #expect(lines.isEmpty)
        }
    }

    /// A stream that does not open the realms that define its permissions takes one snapshot per permission change.
    @Test func restrictedStreamTakesOneSnapshotPerPermissionChange() async throws {
        let body = "{\"live\":true,\"only\":[\"/manager\"]}"
        try await withSession(request: body) { session, fixture in
            for _ in 0..<3 {
                let touching = try fixture.delivery(of: .user, UUID())
                guard case .write(let none, true) = await session.output(for: .deliveries([touching])) else {
                    Issue.record("it is not looked for")
                    return
                }
                #expect(none.isEmpty)
                let lines = try await session.catchUp()
                #expect(lines.count == 1 && lines[0].hasPrefix("{\"checkpoint\""), "\(lines)")
                guard case .write(let again, false) = await session.output(for: .deliveries([touching])) else {
                    Issue.record("a second snapshot is taken")
                    return
                }
                #expect(again.isEmpty)
            }
            // Other changes of these realms need no snapshot and are not sent.
            let entry = try fixture.delivery(of: .timeEntry, UUID())
            guard case .write(let lines, false) = await session.output(for: .deliveries([entry])) else {
                Issue.record("no snapshot is taken")
                return
            }
            #expect(lines.count == 1 && String(buffer: lines[0]).hasPrefix("{\"checkpoint\""))
        }
    }

    @Test func idleSessionSendsKeepalivesUntilTheTokenExpires() async throws {
        try await withSession { session, _ in
            guard case .write(let lines, false) = await session.output(for: .idle(position: 0)) else {
                Issue.record("there is no keepalive")
                return
            }
            #expect(lines.count == 1 && String(buffer: lines[0]).hasPrefix("{\"keepalive\""))
        }
        try await withSession(expiresIn: 0) { session, _ in
            guard case .end = await session.output(for: .idle(position: 0)) else {
                Issue.record("the stream outlives its token")
                return
            }
        }
    }

    @Test func failedWriteUnregistersTheStream() async throws {
        try await withSession { session, _ in
            var writer: any ResponseBodyWriter = BrokenWriter()
            await #expect(throws: BrokenWriter.Broken.self) {
                try await SyncStream(session: session, keepaliveMax: .seconds(20)).run(&writer)
            }
            #expect(session.services.hub.count == 0)
        }
    }
}

private struct BrokenWriter: ResponseBodyWriter {
    struct Broken: Error {}

    mutating func write(_ buffer: ByteBuffer) async throws { throw Broken() }
    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}

/// A session's gateway and its person's realm.
private struct SessionFixture: Sendable {
    let fixture: GatewayFixture
    let path: RealmPath
    let number: Int32

    /// Writes an object, and returns the delivery to a live device.
    func delivery(of kind: Kind, _ id: UUID) throws -> LiveDelivery {
        let before = try fixture.withDatabase { connection in
            try EnvironmentCounter(try connection.run(EnvironmentCounter.load(fixture.environment))[0])
        }
        try fixture.write { try $0.put(ObjectKey(realm: number, kind: kind, id: id), CanonicalJSON("{}"), decision: 0) }
        let page = try fixture.withDatabase { connection in
            try LivePage.read(
                in: fixture.environment, after: before.position, scannedTo: 0, countMax: 100,
                names: KindNames(), path: { $0 == number ? path : nil }, on: &connection)
        }
        return LiveDelivery(
            position: page.position, permissionsPosition: page.permissionsPosition, chunks: page.chunks,
            isConsistent: true)
    }
}

extension SyncSession {
    /// Catches up, in the few steps that an almost empty realm needs.
    fileprivate func catchUp() async throws -> [String] {
        var lines: [String] = []
        for _ in 0..<10 {
            let step = try await next()
            lines += step.lines.map { String(buffer: $0) }
            if step.isDone { return lines }
        }
        Issue.record("catching up does not end")
        return lines
    }
}

/// Runs `body` with a live session that has caught up.
private func withSession(
    expiresIn: Int64 = 600, request text: String = "{\"live\":true}",
    _ body: @Sendable (SyncSession, SessionFixture) async throws -> Void
) async throws {
    try await withGateway { fixture in
        let pool = try Pool(fixture.database, size: 1)
        defer { pool.stop() }
        let limits = GatewayLimits()
        let hub = try LiveHub(
            pool: pool, watchPool: pool, limits: limits, names: KindNames(), logger: Logger(label: "test"))
        let services = SyncServices(
            pool: pool, numbers: RealmNumbers(), hub: hub, kinds: KindDirectory(pool: pool), limits: limits)
        let path = try RealmPath.user("ana@example.com")
        let person = BoundPerson(
            environment: fixture.environment, id: 1, email: "ana@example.com", realm: path, object: UUID())
        let login = Login(
            caller: .person(person), expires: Timestamp.now().secondsSinceEpoch + expiresIn, address: "192.0.2.1")
        let request = try SyncRequest(Array(text.utf8), realmCountMax: 10)
        let buffer = SendBuffer(bytesMax: 1 << 20, expiresIn: .seconds(600)) {}
        defer { buffer.close() }
        let session = try await SyncSession(services, login, request: request, buffer: buffer)
        _ = try await session.catchUp()
        try await body(session, SessionFixture(fixture: fixture, path: path, number: try fixture.realm(path)))
    }
}

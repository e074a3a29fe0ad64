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

/// What a device is told of what comes while it is live.
@Suite(.ownThreads) struct SyncSessionTests {
    @Test func aDeliveryIsHandedOnOnce() async throws {
        try await withSession { session, world in
            let id = UUID()
            let delivery = try world.delivery(of: .timeEntry, id)
            guard case .write(let lines, false) = await session.answer(to: .deliveries([delivery])) else {
                Issue.record("it is not handed on")
                return
            }
            let texts = lines.map { String(buffer: $0) }
            #expect(texts.count == 2 && texts[0].contains(id.text) && texts[1].hasPrefix("{\"checkpoint\""))
            guard case .write(let again, false) = await session.answer(to: .deliveries([delivery])) else {
                Issue.record("it is no delivery any more")
                return
            }
            #expect(again.isEmpty)
        }
    }

    @Test func whatPermissionsAreMadeOfIsReadBeforeAnythingIsHandedOn() async throws {
        try await withSession { session, world in
            let delivery = try world.delivery(of: .user, UUID())
            guard case .write(let lines, true) = await session.answer(to: .deliveries([delivery])) else {
                Issue.record("it is handed on as it is")
                return
            }
            #expect(lines.isEmpty)
        }
    }

    /// A stream that does not open what its permissions are made of hears of it: it looks once, and is done with it.
    @Test func aNarrowStreamLooksOnceForEachChangeOfItsPermissions() async throws {
        let body = "{\"live\":true,\"only\":[\"/manager\"]}"
        try await withSession(asking: body) { session, world in
            for _ in 0..<3 {
                let touching = try world.delivery(of: .user, UUID())
                guard case .write(let none, true) = await session.answer(to: .deliveries([touching])) else {
                    Issue.record("it is not looked for")
                    return
                }
                #expect(none.isEmpty)
                let lines = try await session.catchUp()
                #expect(lines.count == 1 && lines[0].hasPrefix("{\"checkpoint\""), "\(lines)")
                guard case .write(let again, false) = await session.answer(to: .deliveries([touching])) else {
                    Issue.record("it is looked for again")
                    return
                }
                #expect(again.isEmpty)
            }
            // What does not concern permissions needs no look, and is nobody's here.
            let entry = try world.delivery(of: .timeEntry, UUID())
            guard case .write(let lines, false) = await session.answer(to: .deliveries([entry])) else {
                Issue.record("it is looked for")
                return
            }
            #expect(lines.count == 1 && String(buffer: lines[0]).hasPrefix("{\"checkpoint\""))
        }
    }

    @Test func aSilenceIsEndedByAKeepaliveUntilTheTokenExpires() async throws {
        try await withSession { session, _ in
            guard case .write(let lines, false) = await session.answer(to: .quiet(position: 0)) else {
                Issue.record("there is no keepalive")
                return
            }
            #expect(lines.count == 1 && String(buffer: lines[0]).hasPrefix("{\"keepalive\""))
        }
        try await withSession(expiresIn: 0) { session, _ in
            guard case .end = await session.answer(to: .quiet(position: 0)) else {
                Issue.record("the stream outlives its token")
                return
            }
        }
    }

    @Test func aStreamThatCannotBeWrittenIsForgotten() async throws {
        try await withSession { session, _ in
            var writer: any ResponseBodyWriter = BrokenWriter()
            await #expect(throws: BrokenWriter.Broken.self) { try await SyncStream(session: session).run(&writer) }
            #expect(session.services.hub.count == 0)
        }
    }
}

private struct BrokenWriter: ResponseBodyWriter {
    struct Broken: Error {}

    mutating func write(_ buffer: ByteBuffer) async throws { throw Broken() }
    consuming func finish(_ trailingHeaders: HTTPFields?) async throws {}
}

/// The realm of a session's person.
private struct World: Sendable {
    let fixture: GatewayFixture
    let path: RealmPath
    let number: Int32

    /// Writes an object, and reads what a live device is told of it.
    func delivery(of kind: Kind, _ id: UUID) throws -> Delivery {
        let before = try fixture.withDatabase { connection in
            try EnvironmentCounter(try connection.run(EnvironmentCounter.load(fixture.environment))[0])
        }
        try fixture.write { try $0.put(ObjectKey(realm: number, kind: kind, id: id), CanonicalJSON("{}"), decision: 0) }
        let page = try fixture.withDatabase { connection in
            try LivePage.read(
                in: fixture.environment, after: before.position, touchesKnownTo: 0, countMax: 100,
                path: { $0 == number ? path : nil }, on: &connection)
        }
        return Delivery(
            position: page.position, touchesPosition: page.touchesPosition, chunks: page.chunks, isWhole: true)
    }
}

extension SyncSession {
    /// Catches up, in the few steps that it may take where there is next to nothing.
    fileprivate func catchUp() async throws -> [String] {
        var lines: [String] = []
        for _ in 0..<10 {
            let step = try await next()
            lines += step.lines.map { String(buffer: $0) }
            if step.isDone { return lines }
        }
        Issue.record("it is never done")
        return lines
    }
}

/// Lends a live session that has caught up.
private func withSession(
    expiresIn: Int64 = 600, asking asked: String = "{\"live\":true}",
    _ body: @Sendable (SyncSession, World) async throws -> Void
) async throws {
    try await withGateway { fixture in
        let pool = try Pool(fixture.database, size: 1)
        defer { pool.stop() }
        let limits = GatewayLimits()
        let hub = LiveHub(pool: pool, watchPool: pool, limits: limits, logger: Logger(label: "test"))
        let services = SyncServices(pool: pool, numbers: RealmNumbers(), hub: hub, limits: limits)
        let path = try RealmPath.user("ana@example.com")
        let person = Caller.Identity.person(email: "ana@example.com", realm: path, object: UUID())
        let caller = Caller(environment: fixture.environment, id: 1, identity: person)
        let login = Login(
            caller: caller, expires: Timestamp.now().secondsSinceEpoch + expiresIn, address: "192.0.2.1")
        let request = try SyncRequest(Array(asked.utf8), realmCountMax: 10)
        let outbox = SendBuffer(bytesMax: 1 << 20, expiresIn: .seconds(600)) {}
        defer { outbox.close() }
        let session = try await SyncSession(services, login, request: request, outbox: outbox)
        _ = try await session.catchUp()
        try await body(session, World(fixture: fixture, path: path, number: try fixture.realm(path)))
    }
}

import Essentials
import Foundation
import Logging
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@testable import RealmGateway

@Suite(.ownThreads) struct LiveReaderTests {
    /// The first device of an environment has subscribed, and nothing was read for it yet.
    @Test func generationChangeBeforeTheFirstPollIsDetected() async throws {
        try await withGateway { fixture in
            let path = try RealmPath.user("ana@example.com")
            let number = try fixture.realm(path)
            let counter = try fixture.withDatabase { connection in
                try EnvironmentCounter(try connection.run(EnvironmentCounter.load(fixture.environment))[0])
            }
            let pool = try Pool(fixture.database, size: 1)
            defer { pool.stop() }
            let reader = LiveReader(
                environment: fixture.environment, pool: pool, limits: GatewayLimits(),
                names: KindNames(), logger: Logger(label: "test"), wakeup: try Wakeup())
            let buffer = SendBuffer(bytesMax: 1 << 20, expiresIn: .seconds(600)) {}
            defer { buffer.close() }
            let realm = OpenRealm(path: path, number: number, progress: .changeLog(counter.position))
            reader.subscribe(buffer, realms: [realm], from: counter)
            try fixture.withDatabase { connection in
                _ = try connection.run("UPDATE realm.environment SET generation = generation + 1")
            }
            try fixture.write { batch in
                let key = ObjectKey(realm: number, kind: .timeEntry, id: UUID())
                batch.put(key, try CanonicalJSON("{}"), decision: 0)
            }
            reader.wake()
            guard case .lagging = await buffer.next() else {
                Issue.record("the device is not notified")
                return
            }
        }
    }

    /// An idle gateway is notified of changes. It also finds those whose notification was lost: cleared requests, as
    /// with a pooler in transaction mode, and a connection that ended.
    @Test func idleGatewayFindsChanges() async throws {
        let losses = [
            "SELECT", "UPDATE realm.environment SET is_awaited = false",
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                + "AND query LIKE '%AS k(id, generation, position)%' AND pid <> pg_backend_pid()",
        ]
        try await withGateway { fixture in
            let realm = try fixture.realm(RealmPath.user("ana@example.com"))
            let phone = try await fixture.device("ana@example.com")
            let following = Task { try await phone.follow() }
            defer { following.cancel() }
            try await phone.wait("live") { $0.checkpointCount >= 1 }
            var listener = try Connection(fixture.database)
            try listener.run(AwaitedPositions.listen)
            for loss in losses {
                try await eventually("the gateway is idle") {
                    try fixture.withDatabase { connection in
                        try connection.run("SELECT is_awaited FROM realm.environment")[0].decode(Bool.self)
                    }
                }
                try fixture.withDatabase { connection in try connection.runScript(loss) }
                let id = UUID()
                try fixture.write {
                    $0.put(ObjectKey(realm: realm, kind: .timeEntry, id: id), try CanonicalJSON("{}"), decision: 0)
                }
                if loss == losses[0] {
                    let isNotified = try listener.waitForNotification(atMost: patienceMax, or: Wakeup())
                    #expect(isNotified)
                }
                try await phone.wait("the change after: \(loss)") {
                    $0.copy[$0.realm]?["TimeEntry/\(id.uuidString.lowercased())"] != nil
                }
            }
        }
    }
}

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
                names: KindNames(), logger: Logger(label: "test"))
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
}

import Essentials
import Foundation
import Model
import ObjectStore
import Postgres
import TestSupport
import Testing

@Suite(.ownThreads) struct WriteBatchTests {
    @Test func writesGetIncreasingPositions() throws {
        try withRealm { connection, environment, realm, _ in
            let key = ObjectKey(realm: realm, kind: .timeEntry, id: UUID())
            var put = WriteBatch(environment: environment)
            put.put(key, try CanonicalJSON(#"{"a":1,"b":2}"#), decision: 0, isEdit: true)
            let first = try put.commit(on: &connection)
            #expect(first.positions[key] == 1)

            var patch = WriteBatch(environment: environment)
            let stored = try RealmObject.stored(key, in: environment, on: &connection)
            try patch.patch(stored, CanonicalJSON(#"{"b":3}"#), decision: 0)
            #expect(try patch.commit(on: &connection).positions[key] == 2)
            let patched = try load(key, environment, &connection)
            #expect(try patched?.fields == CanonicalJSON(#"{"a": 1, "b": 3}"#))
            #expect(patched?.editPosition == 1)

            var delete = WriteBatch(environment: environment)
            delete.delete(key, decision: 0, isEdit: true)
            #expect(try delete.commit(on: &connection).positions[key] == 3)
            let deleted = try load(key, environment, &connection)
            #expect(deleted?.isDeleted == true)
            #expect(deleted?.editPosition == 3)
        }
    }

    /// Each change has the trace of its own decision, also if they differ or some have none.
    @Test func changeHasTraceOfItsDecision() throws {
        try withRealm { connection, environment, realm, _ in
            let traces = [
                TraceContext("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"), nil,
                TraceContext("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"),
            ]
            let keys = traces.map { _ in ObjectKey(realm: realm, kind: .user, id: UUID()) }
            for round in 1...2 {
                var batch = WriteBatch(environment: environment)
                for (index, key) in keys.enumerated() {
                    batch.trace(traces[index], decision: index)
                    if round == 2, index != 1 {
                        batch.delete(key, decision: index)
                    } else {
                        batch.put(key, try CanonicalJSON(#"{"a":\#(round)}"#), decision: index)
                    }
                }
                let outcome = try batch.commit(on: &connection)
                let rows = try connection.run(
                    "SELECT position, traceparent FROM store.change WHERE environment_id = \(environment)"
                ).decode(Int64.self, String?.self)
                let byPosition = Dictionary(rows.map { ($0.0, $0.1) }) { first, _ in first }
                for (key, trace) in zip(keys, traces) {
                    let position = try #require(outcome.positions[key])
                    #expect(byPosition[position] == .some(trace?.text))
                }
            }
        }
    }

    @Test func unchangedObjectIsNotWritten() throws {
        try withRealm { connection, environment, realm, _ in
            let key = ObjectKey(realm: realm, kind: .user, id: UUID())
            for _ in 0..<2 {
                var batch = WriteBatch(environment: environment)
                batch.put(key, try CanonicalJSON(#"{"a":1}"#), decision: 0)
                _ = try batch.commit(on: &connection)
            }
            var patch = WriteBatch(environment: environment)
            let stored = try RealmObject.stored(key, in: environment, on: &connection)
            try patch.patch(stored, CanonicalJSON(#"{ "a" : 1 }"#), decision: 0)
            #expect(try patch.commit(on: &connection).positions.isEmpty)
            #expect(try load(key, environment, &connection)?.position == 1)
            let pointers: Int64 = try connection.run("SELECT count(*) FROM realm.change")[0].value(0)
            #expect(pointers == 1)
        }
    }

    @Test func conflictedDecisionWritesNothing() throws {
        try withRealm { connection, environment, realm, _ in
            let stale = ObjectKey(realm: realm, kind: .timeEntry, id: UUID())
            let fresh = ObjectKey(realm: realm, kind: .timeEntry, id: UUID())
            var setUp = WriteBatch(environment: environment)
            setUp.put(stale, try CanonicalJSON("{}"), decision: 0)
            setUp.put(fresh, try CanonicalJSON("{}"), decision: 0)
            _ = try setUp.commit(on: &connection)
            let loaded = try [stale, fresh].map { try RealmObject.stored($0, in: environment, on: &connection) }

            // The phone's patch is committed between a worker's load and its save.
            var phone = WriteBatch(environment: environment)
            try phone.patch(loaded[0], CanonicalJSON(#"{"text":"phone"}"#), decision: 0, isEdit: true)
            _ = try phone.commit(on: &connection)

            try connection.runScript("CREATE TABLE own (decision int)")
            var worker = WriteBatch(environment: environment)
            for (decision, object) in loaded.enumerated() {
                try worker.patch(object, CanonicalJSON(#"{"status":"released"}"#), decision: decision)
            }
            worker.append("INSERT INTO own SELECT d FROM unnest('{0,1}'::int[]) d WHERE d <> ALL (realm.missed())")
            let outcome = try worker.commit(on: &connection)
            #expect(outcome.conflicts == [0])
            #expect(try load(stale, environment, &connection)?.fields == CanonicalJSON(#"{"text": "phone"}"#))
            #expect(try load(fresh, environment, &connection)?.fields == CanonicalJSON(#"{"status": "released"}"#))
            let own = try connection.run("SELECT decision FROM own")
            #expect(own.count == 1)
            #expect(try own[0].value(0) == Int32(1))
        }
    }

    /// Law 2: writers of one environment cannot deadlock, independent of the order of their objects, and position order
    /// is commit order.
    @Test func oppositeOrdersDoNotDeadlock() async throws {
        try withRealm { connection, environment, realm, conninfo in
            let keys = (0..<50).map { _ in ObjectKey(realm: realm, kind: .timeEntry, id: UUID()) }
            let threads = (0..<4).map { writer in
                BackgroundThread {
                    var connection = try Connection(conninfo)
                    for round in 0..<40 {
                        var batch = WriteBatch(environment: environment)
                        for key in writer % 2 == 0 ? keys : keys.reversed() {
                            batch.put(key, try CanonicalJSON(#"{"writer":\#(writer),"round":\#(round)}"#), decision: 0)
                        }
                        _ = try batch.commit(on: &connection)
                    }
                }
            }
            for thread in threads { try thread.wait() }
            let stored = try keys.map { try load($0, environment, &connection) }
            #expect(stored.allSatisfy { $0?.fields == stored[0]?.fields }, "the last commit wrote every object")
            let positions = stored.compactMap { $0?.position }
            #expect(
                positions.allSatisfy { $0 <= 8_000 } && positions.contains(8_000), "4 writers, 40 batches, 50 objects")
        }
    }

    /// A reader that has read a position has all earlier ones: a checkpoint during concurrent writes is consistent.
    @Test func readerNeverMissesLaterFilledGap() async throws {
        try withRealm { connection, environment, realm, conninfo in
            let writers = (0..<3).map { writer in
                BackgroundThread {
                    var connection = try Connection(conninfo)
                    for _ in 0..<150 {
                        var batch = WriteBatch(environment: environment)
                        for number in 0..<3 {
                            let key = ObjectKey(realm: realm, kind: .timeEntry, id: UUID())
                            batch.put(
                                key, try CanonicalJSON(#"{"writer":\#(writer),"number":\#(number)}"#), decision: 0)
                        }
                        _ = try batch.commit(on: &connection)
                    }
                }
            }
            var position: Int64 = 0
            var seen = 0
            while seen < 3 * 150 * 3 {
                // Read before the snapshot, which therefore contains all commits of finished writers.
                let areDone = writers.allSatisfy(\.isDone)
                // Everything after `position`, up to the counter of the same snapshot.
                let (counter, count) = try connection.transaction(.snapshot) { transaction in
                    let counter = try EnvironmentCounter(transaction.run(EnvironmentCounter.load(environment))[0])
                    let rows = try transaction.run(
                        Feed.changes(in: environment, after: position, kinds: [.timeEntry], countMax: 10_000))
                    return (counter.position, rows.count)
                }
                seen += count
                position = counter
                if count == 0, areDone { break }
            }
            for writer in writers { try writer.wait() }
            #expect(seen == 3 * 150 * 3)
        }
    }

    private func load(
        _ key: ObjectKey, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> RealmObject? {
        try RealmObject.byKey(connection.run(RealmObject.load([key], in: environment)))[key]
    }
}

@Suite(.ownThreads) struct CompactionTests {
    @Test func compactionNeverPassesTheRelay() throws {
        try withRealm { connection, environment, realm, _ in
            let keys = (0..<3).map { _ in ObjectKey(realm: realm, kind: .timeEntry, id: UUID()) }
            for key in keys {
                var batch = WriteBatch(environment: environment)
                batch.put(key, try CanonicalJSON("{}"), decision: 0)
                _ = try batch.commit(on: &connection)
            }
            for key in keys.prefix(2) {
                var batch = WriteBatch(environment: environment)
                batch.delete(key, decision: 0)
                _ = try batch.commit(on: &connection)
            }
            try connection.run(
                """
                INSERT INTO realm.relay (environment_id, generation, epoch, published_epoch, position)
                VALUES (\(environment.rawValue), 1, 1, 1, 4)
                """)
            let removed = try Compaction.step(environment, keep: .seconds(-1), countMax: 100, on: &connection)
            #expect(removed == .removed(4))
            let left: Int64 = try connection.run("SELECT count(*) FROM realm.object")[0].value(0)
            #expect(left == 2)
            let counter = try EnvironmentCounter(connection.run(EnvironmentCounter.load(environment))[0])
            #expect(counter.compactedPosition == 4)
            #expect(!Cursor(generation: 1, start: 3, position: 3).isValid(for: counter))
            #expect(Cursor(generation: 1, start: 4, position: 0).isValid(for: counter))
        }
    }

    /// Compaction does not wait: it requests the counter's lock only when the floor should move.
    @Test func lockedCounterIsSkipped() throws {
        try withRealm { connection, environment, realm, conninfo in
            try connection.run("INSERT INTO realm.relay VALUES (\(environment.rawValue), 1, 1, 1, 100)")
            let key = ObjectKey(realm: realm, kind: .timeEntry, id: UUID())
            for json in ["{}", nil] {
                var batch = WriteBatch(environment: environment)
                if let json {
                    batch.put(key, try CanonicalJSON(json), decision: 0)
                } else {
                    batch.delete(key, decision: 0)
                }
                _ = try batch.commit(on: &connection)
            }
            func step(keep: Duration) throws -> Compaction.Outcome {
                try Compaction.step(environment, keep: keep, countMax: 100, on: &connection)
            }
            func dueCount(keep: Duration) throws -> Int { try connection.run(Compaction.due(keep: keep)).count }
            #expect(try dueCount(keep: .seconds(600)) == 0)
            #expect(try dueCount(keep: .seconds(-1)) == 1)
            let outcomes = try whileLocked(environment, at: conninfo) {
                [try step(keep: .seconds(-1)), try step(keep: .seconds(600))]
            }
            #expect(outcomes == [.locked, .removed(0)])
            #expect(try step(keep: .seconds(-1)) == .removed(2))
            #expect(try step(keep: .seconds(-1)) == .removed(0))
            #expect(try dueCount(keep: .seconds(-1)) == 0)
            #expect(try connection.run("SELECT FROM realm.object").count == 0)
        }
    }
}

import BackendConnections
import BackendProtocol
import Catalogues
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// What has changed in an environment's back end, read part by part.
extension PollHandler {
    struct ChangesCall: Sendable {
        let people: [BackendPerson]
        /// The watermark: where the part before ended.
        let cursor: String?
        /// That of the poll it is made for.
        let position: Int64
        /// The environment's position when it was asked: what was written later may be newer than the answer.
        let askedAt: Int64
    }

    /// Each part is written with the watermark that it leads to, in one transaction, and the next one is asked for from
    /// there: whenever it is broken off, by a crash or a newer run, it goes on where it was.
    mutating func followChanges(
        _ answer: Answer?, _ object: RealmObject, _ attemptCount: Int, _ decision: Int, _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Disposition<Call> {
        let stored = try connection.run(PollStore.watermark(of: environment))
        guard let (cursor, position) = try stored.first?.decode(String?.self, Int64.self) else { return .finished }
        guard case .changes(let result, of: let call) = answer, call.cursor == cursor else {
            return try ask(since: cursor, at: position, object, environment, &connection)
        }
        switch result {
        case .success(let found):
            guard try write(found, askedAt: call.askedAt, decision, environment, &batch, &writes, &connection) else {
                return try ask(since: cursor, at: position, object, environment, &connection)
            }
            unreadable.report(found.unreadable, in: environment, logger)
            batch.expect(PollStore.expectWatermark(cursor, in: environment, decision: decision))
            batch.also(PollStore.moveWatermark(to: found.cursor, in: environment, decision: decision))
            if let problem = found.problem {
                logger.error(
                    "what has changed cannot be read to its end; the next run begins anew",
                    metadata: ["environment": "\(environment)", "problem": "\(problem)"])
            }
            if found.haveChoicesChanged { batch.also(PollStore.makeFullDue(in: environment, decision: decision)) }
            guard found.hasMore else { return .finished }
            return try ask(since: found.cursor, at: position, object, environment, &connection)
        case .failure(let error):
            return next(after: error, attemptCount, Poll.ofChanges, environment)
        }
    }

    /// - Parameter position: The environment's, now.
    private mutating func ask(
        since cursor: String?, at position: Int64, _ object: RealmObject, _ environment: EnvironmentID,
        _ connection: inout Connection
    ) throws -> Disposition<Call> {
        guard let users = try directory.id(of: .users, in: environment, create: false, on: &connection) else {
            return .finished
        }
        let emails = try connection.run(BackendPeople.initialized(users: users, in: environment)).decode(String.self)
        let people = try BackendPerson.load(emails, in: environment, on: &connection)
        return .call(
            .changes(
                ChangesCall(
                    people: Array(people.values), cursor: cursor, position: object.position, askedAt: position)),
            startBefore: .now + .seconds(600))
    }

    /// Writes the records that differ from what was seen of them.
    ///
    /// - Returns: False when a full comparison has written one that differs since the question was asked, or is about
    ///   to: which of both is newer is found out by asking again.
    private mutating func write(
        _ found: BackendChanges, askedAt position: Int64, _ decision: Int, _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Bool {
        let days = fetcher.followedDays()
        let told = Dictionary(grouping: found.changes, by: \.person).mapValues { $0.map(\.entry) }
        let paths = try told.keys.map { try RealmPath.seen($0) }
        let realms = try directory.ids(of: paths, in: environment, create: true, on: &connection)
        var keys: [ObjectKey] = []
        for (email, entries) in told {
            guard let realm = realms[try .seen(email)] else { continue }
            let ids = Set(entries.map { RealmContents.entryID(of: $0, of: email) })
            keys += ids.map { ObjectKey(realm: realm, kind: .seenRecord, id: $0) }
        }
        let stored = try RealmObject.byKey(try connection.run(RealmObject.load(keys, in: environment)))
        let storedByRealm = Dictionary(grouping: stored.values, by: \.key.realm)
        var isSure = true
        for (email, entries) in told {
            guard let realm = realms[try .seen(email)] else { continue }
            var known: [UUID: SeenRecord] = [:]
            for object in storedByRealm[realm] ?? [] {
                known[object.key.id] = try? object.seenRecord(by: decoder)
            }
            for (id, record) in PollRule.news(known: known, told: entries, days: days, email: email) {
                let key = ObjectKey(realm: realm, kind: .seenRecord, id: id)
                let storedPosition = stored[key]?.position ?? 0
                guard storedPosition <= position, !writes.has(key) else {
                    isSure = false
                    continue
                }
                batch.expect(key, at: storedPosition, decision: decision)
                try writes.put(realm, .seenRecord, id, record, decision)
            }
        }
        return isSure
    }
}

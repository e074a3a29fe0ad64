import BackendConnections
import BackendProtocol
import Catalogues
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// The change feed of an environment's back end, read page by page.
extension PollHandler {
    struct ChangesCall: Sendable {
        let people: [BackendPerson]
        /// The watermark: the cursor of the previous page.
        let cursor: String?
        /// The position of the poll.
        let position: Int64
        /// The environment's position at the request: later writes may be newer than the result.
        let requestedAt: Int64
    }

    /// Writes each page with its watermark in one transaction, and requests the next one from there. After an
    /// interruption by a crash or a newer run, it resumes from the watermark.
    mutating func followChanges(
        _ answer: CallResult?, _ object: RealmObject, _ attemptCount: Int, _ decision: Int,
        _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Disposition<Call> {
        let stored = try connection.run(PollStore.watermark(of: environment))
        guard let (cursor, position) = try stored.first?.decode(String?.self, Int64.self) else { return .finished }
        guard case .changes(let result, of: let call) = answer, call.cursor == cursor else {
            return try requestPage(since: cursor, at: position, object, environment, &connection)
        }
        switch result {
        case .success(let page):
            guard try write(page, requestedAt: call.requestedAt, decision, environment, &batch, &writes, &connection)
            else {
                return try requestPage(since: cursor, at: position, object, environment, &connection)
            }
            unreadable.report(page.unreadable, in: environment, logger)
            batch.expect(PollStore.expectWatermark(cursor, in: environment, decision: decision))
            batch.append(PollStore.moveWatermark(to: page.cursor, in: environment, decision: decision))
            if let problem = page.problem {
                logger.error(
                    "change feed interrupted; next run restarts it",
                    metadata: ["environment": "\(environment)", "problem": "\(problem)"])
            }
            if page.haveChoicesChanged { batch.append(PollStore.makeFullDue(in: environment, decision: decision)) }
            guard page.hasMore else { return .finished }
            return try requestPage(since: page.cursor, at: position, object, environment, &connection)
        case .failure(let error):
            return next(after: error, attemptCount, Poll.changesPerson, environment)
        }
    }

    /// - Parameter position: The environment's current position.
    private mutating func requestPage(
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
                    people: Array(people.values), cursor: cursor, position: object.position, requestedAt: position)),
            startBefore: .now + .seconds(600))
    }

    /// Writes the records that differ from their observations.
    ///
    /// - Returns: False if a full comparison has written a differing record since the request, or this batch writes it:
    ///   another request determines which is newer.
    private mutating func write(
        _ page: BackendChanges, requestedAt position: Int64, _ decision: Int, _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Bool {
        let days = fetcher.followedDays()
        let reported = Dictionary(grouping: page.changes, by: \.person).mapValues { $0.map(\.entry) }
        let paths = try reported.keys.map { try RealmPath.seen($0) }
        let realms = try directory.ids(of: paths, in: environment, create: true, on: &connection)
        var keys: [ObjectKey] = []
        for (email, entries) in reported {
            guard let realm = realms[try .seen(email)] else { continue }
            let ids = Set(entries.map { RealmContents.entryID(of: $0, of: email) })
            keys += ids.map { ObjectKey(realm: realm, kind: .seenRecord, id: $0) }
        }
        let stored = try RealmObject.byKey(try connection.run(RealmObject.load(keys, in: environment)))
        let positions = stored.mapValues(\.position)
        let storedByRealm = Dictionary(grouping: stored.values, by: \.key.realm)
        var isConclusive = true
        for (email, entries) in reported {
            guard let realm = realms[try .seen(email)] else { continue }
            var observations: [UUID: SeenRecord] = [:]
            for object in storedByRealm[realm] ?? [] {
                observations[object.key.id] = try? object.decodedDirectly(as: SeenRecord.self, by: decoder)
            }
            let updates = PollRule.updates(known: observations, reported: entries, days: days, email: email)
            let isWritten = try writeObservations(
                PollRule.Changes(put: updates), realm, positions, through: position, decision, &batch, &writes)
            isConclusive = isConclusive && isWritten
        }
        return isConclusive
    }
}

import Backends
import FoundationEssentials
import Logging
import Metrics
import Model
import Pipeline
import Postgres
import Realms

/// Reads each polled person's choices and records from the back end, and writes what differs from what is stored.
struct PollHandler: Handler {
    struct Call: Sendable {
        let person: BackendPerson
        let position: Int64
    }

    struct Answer: Sendable {
        let found: RealmFetcher.Found
        /// That of the poll it was read for.
        let position: Int64
    }

    let fetcher: RealmFetcher
    let logger: Logger
    var directory = RealmDirectory()
    var trees = KnownTrees()
    private var reported = ReportedReferences()
    private let decoder = JSONDecoder()

    init(_ fetcher: RealmFetcher, logger: Logger) {
        self.fetcher = fetcher
        self.logger = logger
    }

    mutating func decide(
        _ inputs: [Input<Answer>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Next<Call>] {
        guard let polls = try directory.id(of: .polls, in: environment, create: false, on: &connection) else {
            return inputs.map { _ in .finished }
        }
        let keys = inputs.map { ObjectKey(realm: polls, kind: .poll, id: $0.subject.id) }
        let answers = try connection.run([
            RealmObject.load(keys, in: environment), PollStore.finished(keys.map(\.id), in: environment),
        ])
        let objects = try RealmObject.byKey(answers[0])
        let finishedRuns = try PollStore.runs(answers[1])
        var finishing: [PollStore.Finishing] = []
        var writes = PollWrites()
        var nexts: [Next<Call>] = []
        for (index, input) in inputs.enumerated() {
            let key = keys[index]
            batch.expect(key, at: objects[key]?.position ?? 0, decision: index)
            do {
                guard let object = objects[key], let poll = try object.decoded(as: Poll.self, by: decoder),
                    poll.run > finishedRuns[key.id] ?? 0
                else {
                    nexts.append(.finished)
                    continue
                }
                let next = try decide(poll, object, input, index, environment, &writes, &connection)
                if case .finished = next { finishing.append((key.id, poll.run, index)) }
                nexts.append(next)
            } catch let error as Undecodable {
                nexts.append(.dead(reason: error.description))
            }
        }
        try writes.write(to: &batch)
        if !finishing.isEmpty {
            batch.expect(PollStore.expectUnfinished(finishing, in: environment))
            batch.also(PollStore.finish(finishing, in: environment))
        }
        return nexts
    }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Call) async -> Answer {
        let fetcher = fetcher
        do {
            let backend = try fetcher.backend(of: environment, on: &connection)
            return { call in Answer(found: await fetcher.fetch(call.person, from: backend), position: call.position) }
        } catch let error as MissingBackend {
            throw CallerUnavailable(reason: error.description)
        }
    }

    /// - Returns: `.finished` when the run is done with this person.
    private mutating func decide(
        _ poll: Poll, _ object: RealmObject, _ input: Input<Answer>, _ decision: Int, _ environment: EnvironmentID,
        _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Next<Call> {
        // What was read for an earlier run counts no more.
        guard case .answer(let answer) = input.origin, answer.position == object.position else {
            let people = try BackendPerson.load([poll.person], in: environment, on: &connection)
            guard let person = people[poll.person] else { return .finished }
            return .call(Call(person: person, position: object.position), startBefore: .now + .seconds(600))
        }
        switch answer.found {
        case .data(let data, let records, let days):
            let realms = try directory.ids(
                of: [.user(poll.person), .seen(poll.person)], in: environment, create: true, on: &connection)
            guard let own = realms[try .user(poll.person)], let seen = realms[try .seen(poll.person)] else {
                return .finished
            }
            reported.report(data, of: poll.person, in: environment, logger)
            let contents = RealmContents(email: poll.person, data: data, records: [])
            try compareTree(contents, own: own, decision, environment, &writes, &connection)
            let entries = try entries(of: own, before: object.position, environment, &connection)
            var known: [UUID: SeenRecord] = [:]
            for row in try connection.run(RealmObject.load(kinds: [.seenRecord], realm: seen, in: environment)) {
                guard let object = try RealmObject(row) else { continue }
                // One that does not decode is written anew.
                known[object.key.id] = try? object.decoded(as: SeenRecord.self, by: decoder)
            }
            let changes = PollRule.changes(
                known: known, found: records, days: days, email: poll.person, entries: entries, run: poll.run)
            try write(changes, of: poll.person, seen: seen, decision, environment, &writes)
            return .finished
        case .failed(let error):
            if let retry = error.retry(afterAttempts: input.attemptCount) {
                return .park(
                    reason: retry.reason, after: retry.wait, cause: retry.isAsked ? .askedToWait : .backendAway)
            }
            logger.warning(
                "the back end refuses to tell a person's records; the next run asks again",
                metadata: ["environment": "\(environment)", "person": "\(poll.person)", "error": "\(error)"])
            return .finished
        }
    }

    /// The person's entries that nobody has changed since the poll was written, and so since it was read for.
    private func entries(
        of realm: Int32, before position: Int64, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> [UUID: TimeEntry] {
        var entries: [UUID: TimeEntry] = [:]
        for row in try connection.run(RealmObject.load(kinds: [.timeEntry], realm: realm, in: environment)) {
            guard let object = try RealmObject(row), object.position < position else { continue }
            // One that does not decode waits for a person in the submitter.
            entries[object.key.id] = try? object.decoded(as: TimeEntry.self, by: decoder)
        }
        return entries
    }

    private func write(
        _ changes: PollRule.Changes, of email: String, seen: Int32, _ decision: Int, _ environment: EnvironmentID,
        _ writes: inout PollWrites
    ) throws {
        for (id, record) in changes.put { try writes.put(seen, .seenRecord, id, record, decision) }
        for id in changes.gone { writes.delete(seen, .seenRecord, id, decision) }
        if !changes.ambiguous.isEmpty {
            logger.error(
                "several records of the back end carry one entry's marker; a person must look",
                metadata: [
                    "environment": "\(environment)", "person": "\(email)",
                    "entries": "\(changes.ambiguous.prefix(10).map(\.text).sorted())",
                ])
        }
    }
}

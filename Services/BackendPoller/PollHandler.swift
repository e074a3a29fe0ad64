import BackendConnections
import BackendProtocol
import Catalogues
import Essentials
import FoundationEssentials
import KeyedWorker
import Logging
import Model
import ObjectStore
import Postgres

/// Reads what has changed, or a polled person's choices and records, from the back end, and writes what differs from
/// what is stored.
struct PollHandler: Handler {
    enum Call: Sendable {
        case person(BackendPerson, position: Int64, revision: Int64 = 0)
        case changes(ChangesCall)
        case listing(ListingCall)

        /// That of the poll it is made for.
        var position: Int64 {
            switch self {
            case .person(_, let position, _): position
            case .changes(let call): call.position
            case .listing(let call): call.position
            }
        }
    }

    enum Answer: Sendable {
        case person(Result<PersonRead, BackendError>, position: Int64)
        case changes(Result<BackendChanges, BackendError>, of: ChangesCall)
        case listing(Result<ListingRead, BackendError>, of: ListingCall)

        /// That of the poll it was read for.
        var position: Int64 {
            switch self {
            case .person(_, let position): position
            case .changes(_, let call): call.position
            case .listing(_, let call): call.position
            }
        }
    }

    /// What a person's poll read.
    struct PersonRead: Sendable {
        let found: RealmFetcher.Observation
        /// Which edit of the environment's back end it was asked by.
        let revision: Int64
        let tree: NodeTree
        /// The same in this process for reads that found the same.
        let hash: Int

        /// Takes the tree's digest here, where the call is made, and not where the worker decides.
        init(_ found: RealmFetcher.Observation, revision: Int64 = 0, lastTree: LastTree = LastTree()) {
            self.found = found
            self.revision = revision
            tree = lastTree.tree(of: found.data.nodes)
            var hasher = Hasher()
            hasher.combine(tree.digest)
            hasher.combine(found.data.contexts)
            hasher.combine(found.data.templates)
            hasher.combine(found.records)
            hasher.combine(found.unreadable)
            hasher.combine(found.data.unreadable)
            hasher.combine(found.days)
            hash = hasher.finalize()
        }
    }

    let fetcher: RealmFetcher
    let logger: Logger
    var directory = RealmDirectory()
    private var revisions: [EnvironmentID: Int64] = [:]
    private var reported = ReportedReferences()
    var unreadable = ReportedRecords()
    private var kept = KeptNodes()
    var compared = ComparedReads()
    var listed: ListedDays
    var followed = FollowedChanges(of: StoredPerson.kinds)
    let decoder = JSONDecoder()

    init(_ fetcher: RealmFetcher, logger: Logger) {
        self.fetcher = fetcher
        self.logger = logger
        listed = ListedDays(dayCount: fetcher.entryDays + fetcher.aheadDays + 1)
    }

    mutating func decide(
        _ inputs: [WorkItem<Answer>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Call>] {
        guard let polls = try directory.id(of: .polls, in: environment, create: false, on: &connection) else {
            return inputs.map { _ in .finished }
        }
        let keys = inputs.map { ObjectKey(realm: polls, kind: .poll, id: $0.subject.id) }
        let answers = try connection.run([
            RealmObject.load(keys, in: environment), PollStore.finished(keys.map(\.id), in: environment),
            BackendConfiguration.revision(in: environment),
        ])
        revisions[environment] = try answers[2].first?.decode(Int64.self)
        let objects = try RealmObject.byKey(answers[0])
        let finishedRuns = try PollStore.runs(answers[1])
        var finishing: [PollStore.Finishing] = []
        var writes = PollWrites()
        var nexts: [Disposition<Call>] = []
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
                let next = try decide(poll, object, input, index, environment, &batch, &writes, &connection)
                if case .finished = next { finishing.append((key.id, poll.run, index)) }
                nexts.append(next)
            } catch let error as Undecodable {
                nexts.append(.dead(reason: error.description))
            }
        }
        try writes.write(to: &batch)
        try remember(writes.readings, in: environment, &batch)
        if !finishing.isEmpty {
            batch.expect(PollStore.expectUnfinished(finishing, in: environment))
            batch.also(PollStore.finish(finishing, in: environment))
        }
        return nexts
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { revisions[environment] ?? 0 }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Call) async -> Answer {
        let fetcher = fetcher
        do {
            let backend = try fetcher.adapters.adapter(of: environment, on: &connection)
            let lastTree = LastTree()
            return { call in
                switch call {
                case .person(let person, let position, let revision):
                    let found = await fetcher.fetch(person, from: backend)
                    return .person(
                        found.map { PersonRead($0, revision: revision, lastTree: lastTree) }, position: position)
                case .changes(let call):
                    do throws(BackendError) {
                        return .changes(
                            .success(try await backend.changes(of: call.people, since: call.cursor)), of: call)
                    } catch {
                        return .changes(.failure(error), of: call)
                    }
                case .listing(let call):
                    return .listing(await call.result(from: backend), of: call)
                }
            }
        } catch let error as MissingBackend {
            throw CallerUnavailable(reason: error.description)
        }
    }

    /// - Returns: `.finished` when the run is done with this poll.
    private mutating func decide(
        _ poll: Poll, _ object: RealmObject, _ input: WorkItem<Answer>, _ decision: Int, _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Disposition<Call> {
        var answer: Answer?
        // What was read for an earlier run counts no more.
        if case .answer(let found) = input.origin, found.position == object.position { answer = found }
        if poll.person == Poll.ofChanges {
            if try isListed(environment, &connection) {
                return try followListing(
                    answer, poll, object, input.attemptCount, decision, environment, &batch, &writes, &connection)
            }
            return try followChanges(
                answer, object, input.attemptCount, decision, environment, &batch, &writes, &connection)
        }
        switch answer {
        case .person(.success(let read), _) where read.revision != callerRevision(of: environment):
            // It was edited while it was asked: what people may report on may be otherwise now.
            return try ask(of: poll.person, object, environment, &connection)
        case .person(.success(let read), _):
            let found = read.found
            let realms = try directory.ids(
                of: [.user(poll.person), .seen(poll.person)], in: environment, create: true, on: &connection)
            guard let own = realms[try .user(poll.person)], let seen = realms[try .seen(poll.person)] else {
                return .finished
            }
            if try !followed.follow(environment, on: &connection) {
                compared.forget(environment)
                listed.forget(environment)
            }
            let name = ComparedReads.Name(environment: environment, poll: object.key.id)
            if let known = compared.position(of: name, read.hash),
                try isUnchanged(since: known, own, seen, read.tree, environment, &connection)
            {
                writes.readings.append(
                    Reading(
                        tree: read.tree, nodes: nil, email: poll.person, readAt: found.readAt, isUnplaced: false,
                        decision: decision))
                return .finished
            }
            unreadable.report(found.data.unreadable + found.unreadable, of: poll.person, in: environment, logger)
            let areChoicesRead = found.data.unreadable.isEmpty
            let (data, tree) =
                areChoicesRead
                ? (found.data, read.tree)
                : try kept.complete(found.data, read.tree, of: poll.person, in: environment, decoder, &connection)
            let isDangling = reported.report(data, tree, of: poll.person, in: environment, logger)
            let contents = RealmContents(email: poll.person, data: data, records: [], readAt: found.readAt)
            let stored = try StoredPerson(
                own, seen, found.days, Set(found.records.map { RealmContents.entryID(of: $0, of: poll.person) }),
                tree, environment, decoder, &connection)
            let changes = PollRule.changes(
                known: stored.seen, found: found.records, days: found.days, email: poll.person,
                entries: stored.entries(before: object.position), unresolved: stored.unresolved(in: data),
                run: poll.run, isWhole: found.unreadable.isEmpty)
            reportAmbiguous(changes.ambiguous, of: poll.person, environment)
            guard
                try write(
                    changes, seen: seen, before: object.position, decision, environment, &batch, &writes, &connection)
            else { return try ask(of: poll.person, object, environment, &connection) }
            let writtenCount = writes.count
            let isOffered = try compareChoices(
                contents, tree, stored, decision, environment, &writes, &connection)
            if !isOffered { try writes.patch(object, ["run": Poll.runOfAnother], decision) }
            try compareRetired(tree, stored, decision, environment, &writes, &connection)
            // What refers to what is not there, and what cannot be read, is counted each time.
            if changes == PollRule.Changes(), writes.count == writtenCount, stored.user != nil, !isDangling,
                found.unreadable.isEmpty, areChoicesRead, stored.newest < object.position
            {
                compared.remember(name, read.hash, at: stored.newest)
            }
            writes.readings.append(
                Reading(
                    tree: tree, nodes: stored.isTreeKnown ? nil : data.nodes, email: poll.person,
                    readAt: found.readAt, isUnplaced: stored.user == nil, decision: decision))
            return .finished
        case .person(.failure(let error), _):
            return next(after: error, input.attemptCount, poll.person, environment)
        case .changes, .listing, nil:
            return try ask(of: poll.person, object, environment, &connection)
        }
    }

    /// Whether nobody has changed anything of a person since it was found to be as the back end says.
    private func isUnchanged(
        since position: Int64, _ own: Int32, _ seen: Int32, _ tree: NodeTree, _ environment: EnvironmentID,
        _ connection: inout Connection
    ) throws -> Bool {
        if followed.hasChanged([own, seen], since: position, in: environment) { return false }
        return try connection.run(AudienceStore.stored([tree.digest], in: environment)).count > 0
    }

    private func ask(
        of email: String, _ object: RealmObject, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> Disposition<Call> {
        let people = try BackendPerson.load([email], in: environment, on: &connection)
        guard let person = people[email] else { return .finished }
        return .call(
            .person(person, position: object.position, revision: callerRevision(of: environment)),
            startBefore: .now + .seconds(600))
    }

    /// What happens after a read that failed.
    func next(
        after error: BackendError, _ attemptCount: Int, _ person: String, _ environment: EnvironmentID
    ) -> Disposition<Call> {
        if let retry = error.retry(afterAttempts: attemptCount) {
            return .park(
                reason: retry.reason, after: retry.wait, cause: .away(askingFor: retry.asked))
        }
        logger.warning(
            "the back end refuses to tell records; the next run asks again",
            metadata: [
                "environment": "\(environment)", "person": "\(person == Poll.ofChanges ? "what has changed" : person)",
                "error": "\(error)",
            ])
        return .finished
    }

    /// Writes what a full comparison found, but for what was told to have changed since the poll was written: that may
    /// be newer than what was read for it.
    ///
    /// - Returns: False, with nothing written, when this batch already writes one of them as told: whether that counts
    ///   is seen when the batch is committed.
    private func write(
        _ changes: PollRule.Changes, seen: Int32, before position: Int64, _ decision: Int,
        _ environment: EnvironmentID, _ batch: inout WriteBatch, _ writes: inout PollWrites,
        _ connection: inout Connection
    ) throws -> Bool {
        let ids = changes.gone.union(changes.put.keys)
        if ids.isEmpty { return true }
        let keys = ids.map { ObjectKey(realm: seen, kind: .seenRecord, id: $0) }
        if keys.contains(where: writes.has) { return false }
        let stored = try RealmObject.byKey(try connection.run(RealmObject.load(keys, in: environment)))
        for key in keys {
            let storedPosition = stored[key]?.position ?? 0
            guard storedPosition < position else { continue }
            batch.expect(key, at: storedPosition, decision: decision)
            if let record = changes.put[key.id] {
                try writes.put(seen, .seenRecord, key.id, record, decision)
            } else {
                writes.delete(seen, .seenRecord, key.id, decision)
            }
        }
        return true
    }

    func reportAmbiguous(_ ids: Set<UUID>, of email: String, _ environment: EnvironmentID) {
        if ids.isEmpty { return }
        logger.error(
            "several records of the back end carry one entry's marker; a person must look",
            metadata: [
                "environment": "\(environment)", "person": "\(email)",
                "entries": "\(ids.prefix(10).map(\.text).sorted())",
            ])
    }
}

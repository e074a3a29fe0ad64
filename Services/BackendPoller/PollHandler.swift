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

/// Reads changes, or a person's choices and records, from the back end, and writes the differences from the stored
/// state.
struct PollHandler: Handler {
    enum Call: Sendable {
        case person(BackendPerson, position: Int64, revision: Int64 = 0)
        case changes(ChangesCall)
        case listing(ListingCall)
    }

    enum CallResult: Sendable {
        case person(Result<PersonRead, BackendError>, position: Int64)
        case changes(Result<BackendChanges, BackendError>, of: ChangesCall)
        case listing(Result<ListingRead, BackendError>, of: ListingCall)

        /// The position of the poll.
        var position: Int64 {
            switch self {
            case .person(_, let position): position
            case .changes(_, let call): call.position
            case .listing(_, let call): call.position
            }
        }
    }

    /// The result of a person's poll.
    struct PersonRead: Sendable {
        let observation: RealmFetcher.Observation
        /// The revision of the environment's back end that the call used.
        let revision: Int64
        let tree: NodeTree
        /// Equal for equal results in this process.
        let hash: Int

        /// Computes the digests during the call, not in the worker's decision.
        init(_ observation: RealmFetcher.Observation, revision: Int64 = 0, lastTree: LastTreeCache = LastTreeCache()) {
            self.observation = observation
            self.revision = revision
            tree = lastTree.tree(of: observation.data.nodes)
            var hasher = Hasher()
            hasher.combine(tree.digest)
            hasher.combine(observation.data.contexts)
            hasher.combine(observation.data.templates)
            hasher.combine(observation.records)
            hasher.combine(observation.unreadable)
            hasher.combine(observation.data.unreadable)
            hasher.combine(observation.days)
            hash = hasher.finalize()
        }
    }

    let fetcher: RealmFetcher
    let logger: Logger
    var directory = RealmDirectory()
    private var revisions: [EnvironmentID: Int64] = [:]
    private var danglingReferences = DanglingReferenceReporter()
    var unreadable = UnreadableRecordReporter()
    private var nodeCompletion = NodeCompletion()
    var comparisons = ComparisonCache()
    var listings: ListingCache
    var changeTracker = ChangeTracker(of: StoredPerson.kinds)
    let decoder = JSONDecoder()

    init(_ fetcher: RealmFetcher, logger: Logger) {
        self.fetcher = fetcher
        self.logger = logger
        listings = ListingCache(dayCount: fetcher.entryDays + fetcher.aheadDays + 1)
    }

    mutating func decide(
        _ inputs: [WorkItem<CallResult>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Call>] {
        guard let polls = try directory.id(of: .polls, in: environment, create: false, on: &connection) else {
            return inputs.map { _ in .finished }
        }
        let keys = inputs.map { ObjectKey(realm: polls, kind: .poll, id: $0.subject.id) }
        let results = try connection.run([
            RealmObject.load(keys, in: environment), PollStore.finished(keys.map(\.id), in: environment),
            BackendConfiguration.revision(in: environment),
        ])
        revisions[environment] = try results[2].first?.decode(Int64.self)
        let objects = try RealmObject.byKey(results[0])
        let finishedRuns = try PollStore.runs(results[1])
        var finishing: [PollStore.Finishing] = []
        var writes = PollWrites()
        var dispositions: [Disposition<Call>] = []
        for (index, input) in inputs.enumerated() {
            let key = keys[index]
            batch.expect(key, at: objects[key]?.position ?? 0, decision: index)
            do {
                guard let object = objects[key], let poll = try object.decoded(as: Poll.self, by: decoder),
                    poll.run > finishedRuns[key.id] ?? 0
                else {
                    dispositions.append(.finished)
                    continue
                }
                let next = try decide(poll, object, input, index, environment, &batch, &writes, &connection)
                if case .finished = next { finishing.append((key.id, poll.run, index)) }
                dispositions.append(next)
            } catch let error as StoredJSONError {
                dispositions.append(.deadLettered(reason: error.description))
            }
        }
        try writes.write(to: &batch)
        try record(writes.observedChoices, in: environment, &batch)
        if !finishing.isEmpty {
            batch.expect(PollStore.expectUnfinished(finishing, in: environment))
            batch.append(PollStore.finish(finishing, in: environment))
        }
        return dispositions
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { revisions[environment] ?? 0 }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Call) async -> CallResult {
        let fetcher = fetcher
        do {
            let backend = try fetcher.adapters.adapter(of: environment, on: &connection)
            let lastTree = LastTreeCache()
            return { call in
                switch call {
                case .person(let person, let position, let revision):
                    let observation = await fetcher.fetch(person, from: backend)
                    return .person(
                        observation.map { PersonRead($0, revision: revision, lastTree: lastTree) }, position: position)
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

    /// - Returns: `.finished` if the run has completed this poll.
    private mutating func decide(
        _ poll: Poll, _ object: RealmObject, _ input: WorkItem<CallResult>, _ decision: Int,
        _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Disposition<Call> {
        var answer: CallResult?
        // A result of an earlier run is ignored.
        if case .result(let current) = input.origin, current.position == object.position { answer = current }
        if poll.person == Poll.changesPerson {
            if try isListed(environment, &connection) {
                return try followListing(
                    answer, poll, object, input.attemptCount, decision, environment, &batch, &writes, &connection)
            }
            return try followChanges(
                answer, object, input.attemptCount, decision, environment, &batch, &writes, &connection)
        }
        switch answer {
        case .person(.success(let read), _) where read.revision != callerRevision(of: environment):
            // The back end's settings were edited during the call: the reporting data may be different now.
            return try requestRead(of: poll.person, object, environment, &connection)
        case .person(.success(let read), _):
            return try compare(read, poll, object, decision, environment, &batch, &writes, &connection)
        case .person(.failure(let error), _):
            return next(after: error, input.attemptCount, poll.person, environment)
        case .changes, .listing, nil:
            return try requestRead(of: poll.person, object, environment, &connection)
        }
    }

    /// Compares a person's reporting data and records with the stored state, and writes the differences.
    private mutating func compare(
        _ read: PersonRead, _ poll: Poll, _ object: RealmObject, _ decision: Int, _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Disposition<Call> {
        let observation = read.observation
        let realms = try directory.ids(
            of: [.user(poll.person), .seen(poll.person)], in: environment, create: true, on: &connection)
        guard let own = realms[try .user(poll.person)], let seen = realms[try .seen(poll.person)] else {
            return .finished
        }
        if try !changeTracker.follow(environment, on: &connection) {
            comparisons.removeAll(in: environment)
            listings.removeAll(in: environment)
        }
        let name = ComparisonCache.Name(environment: environment, poll: object.key.id)
        if let position = comparisons.position(of: name, read.hash),
            try isUnchanged(since: position, own, seen, read.tree, environment, &connection)
        {
            writes.observedChoices.append(
                ObservedChoices(
                    tree: read.tree, nodes: nil, email: poll.person, readAt: observation.readAt,
                    removesCatalogue: false, decision: decision))
            return .finished
        }
        unreadable.report(
            observation.data.unreadable + observation.unreadable, of: poll.person, in: environment, logger)
        let (data, tree) =
            observation.data.unreadable.isEmpty
            ? (observation.data, read.tree)
            : try nodeCompletion.complete(
                observation.data, read.tree, of: poll.person, in: environment, decoder, &connection)
        let isDangling = danglingReferences.report(data, tree, of: poll.person, in: environment, logger)
        let stored = try StoredPerson(
            own, seen, observation.days,
            Set(observation.records.map { RealmContents.entryID(of: $0, of: poll.person) }), tree, environment,
            decoder, &connection)
        let changes = PollRule.changes(
            known: stored.seen, found: observation.records, days: observation.days, email: poll.person,
            entries: stored.entries(before: object.position), repeated: stored.repeated(in: data),
            run: poll.run, isWhole: observation.unreadable.isEmpty)
        reportAmbiguous(changes.ambiguous, of: poll.person, environment)
        guard
            try write(changes, seen: seen, before: object.position, decision, environment, &batch, &writes, &connection)
        else { return try requestRead(of: poll.person, object, environment, &connection) }
        let writtenCount = writes.count
        let contents = RealmContents(email: poll.person, data: data, records: [], readAt: observation.readAt)
        try writeChoices(contents, tree, stored, object, decision, environment, &writes, &connection)
        // Dangling references and unreadable rows are counted in each run, so they are not cached.
        if changes == PollRule.Changes(), writes.count == writtenCount, stored.user != nil, !isDangling,
            observation.unreadable.isEmpty, observation.data.unreadable.isEmpty, stored.newest < object.position
        {
            comparisons.insert(name, read.hash, at: stored.newest)
        }
        writes.observedChoices.append(
            ObservedChoices(
                tree: tree, nodes: stored.isTreeKnown ? nil : data.nodes, email: poll.person,
                readAt: observation.readAt, removesCatalogue: stored.user == nil, decision: decision))
        return .finished
    }

    private mutating func writeChoices(
        _ contents: RealmContents, _ tree: NodeTree, _ stored: StoredPerson, _ poll: RealmObject, _ decision: Int,
        _ environment: EnvironmentID, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws {
        let isComplete = try compareChoices(contents, tree, stored, decision, environment, &writes, &connection)
        if !isComplete { try writes.patch(poll, ["run": Poll.repeatRequestedRun], decision) }
        try compareRetired(tree, stored, decision, environment, &writes, &connection)
    }

    /// Returns whether a person's objects are unchanged since they were equal to the back end's.
    private func isUnchanged(
        since position: Int64, _ own: Int32, _ seen: Int32, _ tree: NodeTree, _ environment: EnvironmentID,
        _ connection: inout Connection
    ) throws -> Bool {
        if changeTracker.hasChanged([own, seen], since: position, in: environment) { return false }
        return try connection.run(AudienceStore.stored([tree.digest], in: environment)).count > 0
    }

    private func requestRead(
        of email: String, _ object: RealmObject, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> Disposition<Call> {
        let people = try BackendPerson.load([email], in: environment, on: &connection)
        guard let person = people[email] else { return .finished }
        return .call(
            .person(person, position: object.position, revision: callerRevision(of: environment)),
            startBefore: .now + .seconds(600))
    }

    /// Returns the disposition after a failed read.
    func next(
        after error: BackendError, _ attemptCount: Int, _ person: String, _ environment: EnvironmentID
    ) -> Disposition<Call> {
        if let retry = error.retry(afterAttempts: attemptCount) {
            return .deferred(reason: retry.reason, after: retry.wait, cause: .unavailable(retryAfter: retry.retryAfter))
        }
        logger.warning(
            "back end refused poll; next run retries",
            metadata: [
                "environment": "\(environment)",
                "person": "\(person == Poll.changesPerson ? "changes of all people" : person)", "error": "\(error)",
            ])
        return .finished
    }

    /// Writes the differences of a full comparison, except for records that were written as changed since the poll was
    /// written, which may be newer.
    ///
    /// - Returns: False, without writes, if this batch already writes one of the records as changed: only the commit
    ///   decides whether that write is valid.
    private func write(
        _ changes: PollRule.Changes, seen: Int32, before position: Int64, _ decision: Int, _ environment: EnvironmentID,
        _ batch: inout WriteBatch, _ writes: inout PollWrites, _ connection: inout Connection
    ) throws -> Bool {
        let ids = changes.gone.union(changes.put.keys)
        if ids.isEmpty { return true }
        let keys = ids.map { ObjectKey(realm: seen, kind: .seenRecord, id: $0) }
        if keys.contains(where: writes.has) { return false }
        let stored = try RealmObject.byKey(try connection.run(RealmObject.load(keys, in: environment)))
        try writeObservations(
            changes, seen, stored.mapValues(\.position), through: position - 1, decision, &batch, &writes)
        return true
    }

    /// Writes differences from a person's observations, except for records that were written after `position` or are
    /// written by this batch.
    ///
    /// - Parameter positions: The positions of the stored observations.
    /// - Returns: Whether all differences are written.
    @discardableResult func writeObservations(
        _ changes: PollRule.Changes, _ realm: Int32, _ positions: [ObjectKey: Int64], through position: Int64,
        _ decision: Int, _ batch: inout WriteBatch, _ writes: inout PollWrites
    ) throws -> Bool {
        var isComplete = true
        for id in changes.gone.union(changes.put.keys) {
            let key = ObjectKey(realm: realm, kind: .seenRecord, id: id)
            let storedPosition = positions[key] ?? 0
            guard storedPosition <= position, !writes.has(key) else {
                isComplete = false
                continue
            }
            batch.expect(key, at: storedPosition, decision: decision)
            if let record = changes.put[id] {
                try writes.put(realm, .seenRecord, id, record, decision)
            } else {
                writes.delete(realm, .seenRecord, id, decision)
            }
        }
        return isComplete
    }

    func reportAmbiguous(_ ids: Set<UUID>, of email: String, _ environment: EnvironmentID) {
        if ids.isEmpty { return }
        logger.error(
            "several back-end records carry one entry's marker",
            metadata: [
                "environment": "\(environment)", "person": "\(email)",
                "entries": "\(ids.prefix(10).map(\.text).sorted())",
            ])
    }
}

import BackendConnections
import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Loads what entries concern, lets `SubmissionRule` decide, and writes what it decided.
struct EntryHandler: Handler {
    struct Call: Sendable {
        let submission: SubmissionCall
        let marker: String
        let person: BackendPerson
        /// What it writes is over, one way or the other, when the lease ends.
        let before: WriteDeadline
        let sent: SentAttempt?

        func answer(_ found: SubmissionAnswer) -> Answer {
            Answer(found: found, version: submission.version, sent: sent)
        }
    }

    struct Answer: Sendable {
        let found: SubmissionAnswer
        let version: Int64
        let sent: SentAttempt?
    }

    static let schemaOldest: Int32 = 27

    let rule: SubmissionRule
    var observationRule: ObservationRule {
        ObservationRule(waitMin: rule.settleMin, retryMin: rule.retryMin, retryMax: rule.retryMax)
    }
    let adapters: BackendRegistry

    var directory = RealmDirectory()
    var reporting = ReportingCache()
    private var revisions: [EnvironmentID: Int64] = [:]
    let decoder = JSONDecoder()

    init(rule: SubmissionRule, adapters: BackendRegistry) {
        self.rule = rule
        self.adapters = adapters
    }

    mutating func decide(
        _ inputs: [WorkItem<Answer>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Call>] {
        let started = ContinuousClock.now
        reporting.beginBatch()
        let realms = try directory.ids(
            of: Set(inputs.flatMap { [$0.subject.realm, $0.subject.entryRealm].compactMap(\.self) }), in: environment,
            create: false, on: &connection)
        let keys = inputs.map { input in
            input.subject.entryRealm.flatMap { realms[$0] }.map {
                ObjectKey(realm: $0, kind: .timeEntry, id: input.subject.id)
            }
        }
        // An entry's own event says nothing of what was seen of it.
        let records = inputs.map { input in
            (input.isObservation ? realms[input.subject.realm] : nil).map {
                ObjectKey(realm: $0, kind: .seenRecord, id: input.subject.id)
            }
        }
        let answers = try connection.run([
            RealmObject.load((keys + records).compactMap { $0 }, in: environment),
            EntryStore.loadLedgers(inputs.map(\.subject.id), in: environment),
            BackendConfiguration.revision(in: environment),
            EntryStore.loadRestore,
        ])
        // An environment without a back end of ours is looked after by an integration, which submits by itself.
        guard let revision = try answers[2].first?.decode(Int64.self) else { return inputs.map { _ in .finished } }
        revisions[environment] = revision
        let objects = try RealmObject.byKey(answers[0])
        let ledgers = try EntryStore.ledgers(answers[1], sent: Self.sent(inputs))
        let restore = try EntryStore.restore(answers[3])

        var writes = EntryWrites()
        // Realms whose entry gets the ledger of an id with this batch.
        var begun: [UUID: Int32] = [:]
        var decided: Set<ObjectKey> = []
        var unlogged: [Unlogged] = []
        var nexts = inputs.map { _ in Disposition<Call>.finished }
        // Entries before what was seen of them.
        let observations = inputs.indices.filter { inputs[$0].isObservation }
        for index in inputs.indices.filter({ !inputs[$0].isObservation }) + observations {
            let input = inputs[index]
            guard let key = keys[index] else { continue }
            batch.expect(key, at: objects[key]?.position ?? 0, decision: index)
            if let other = begun[key.id], other != key.realm {
                // Whose the id is shows when this batch is committed.
                nexts[index] = .park(reason: "another entry has the same id", after: rule.retryMin, cause: .planned)
                continue
            }
            if !decided.insert(key).inserted {
                nexts[index] = .park(reason: "the entry is being decided", after: rule.retryMin, cause: .planned)
                continue
            }
            do {
                let stored = ledgers[key.id]
                let isAnothers = stored.map { $0.realm != key.realm } ?? false
                let ledger = isAnothers ? nil : try stored?.ledger.get()
                var (state, person) = try state(
                    objects[key], ledger, isAnothers, input, key, in: environment, on: &connection)
                state.canCall = input.canCall
                try note(input.heard, in: &state, key, environment, &connection)
                var encoded = input.sent?.encoded
                var decision =
                    input.isObservation
                    ? try observe(records[index].flatMap { objects[$0] }, state, input, key, environment, &connection)
                    : decide(state, input)
                if decision.step == .check {
                    try check(&state, key, environment, &connection)
                    state.note(restore)
                    if let wanted = state.wanted, let fields = objects[key]?.fields {
                        encoded = EncodedWanted(wanted, fields: fields)
                    }
                    decision = decide(state, input)
                }
                decision = try keepingShared(decision, about: state, input, key, environment, &connection)
                if decision.ledger != nil { begun[key.id] = key.realm }
                writes.add(
                    decision, about: state, key: key, version: stored?.version ?? 0, encoded: encoded,
                    record: AttemptRecord(decision, heard: input.heard, trace: input.trace), decision: index,
                    now: Timestamp.now())
                if input.isRetry, let looked = EntryLogRule.Looked(decision, about: state, entry: key.id) {
                    unlogged.append((looked, key, index))
                }
                let sent = SentAttempt(decision, encoded, realm: key.realm)
                nexts[index] = next(decision.step, key, person, sent, started)
            } catch let error as Undecodable {
                nexts[index] = .dead(reason: error.description)
            }
        }
        try log(unlogged, in: environment, &writes, on: &connection)
        try writes.write(to: &batch, over: objects, environment, connection: &connection)
        return nexts
    }

    /// The attempts whose answers are among the inputs.
    private static func sent(_ inputs: [WorkItem<Answer>]) -> [UUID: SentAttempt] {
        var sent: [UUID: SentAttempt] = [:]
        for input in inputs { if let attempt = input.sent { sent[input.subject.id] = attempt } }
        return sent
    }

    func decide(_ state: SubmissionState, _ input: WorkItem<Answer>) -> SubmissionDecision {
        switch input.origin {
        case .event, .retry: rule.decide(state, .look, attemptCount: input.attemptCount)
        case .answer(let answer):
            rule.decide(state, .answer(answer.found, version: answer.version), attemptCount: input.attemptCount)
        }
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { revisions[environment] ?? 0 }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Call) async -> Answer {
        let caller: SubmissionCaller
        do {
            caller = SubmissionCaller(backend: try adapters.adapter(of: environment, on: &connection))
        } catch let error as MissingBackend {
            throw CallerUnavailable(reason: error.description)
        }
        return { call in
            let found = await caller.call(
                call.submission, marker: call.marker, person: call.person, before: call.before)
            return call.answer(found)
        }
    }

    func rates(on connection: inout Connection, for environment: EnvironmentID) throws -> CallRates {
        try EntryStore.rates(connection.run(BackendConfiguration.callRates(of: environment)))
    }

    func unmade(_ call: Call) -> Answer? { call.answer(.notMade) }

    func kind(of call: Call) -> CallKind {
        switch call.submission.action {
        case .create, .update, .delete: .write
        case .find: .read
        }
    }

    // MARK: State

    private mutating func state(
        _ object: RealmObject?, _ ledger: Ledger?, _ isAnothers: Bool, _ input: WorkItem<Answer>, _ key: ObjectKey,
        in environment: EnvironmentID,
        on connection: inout Connection
    ) throws -> (SubmissionState, BackendPerson?) {
        let person = try input.subject.entryRealm?.email.flatMap { email in
            try reporting.person(email, in: environment, on: &connection)
        }
        guard let object else { return (SubmissionState(entry: .missing, ledger: ledger), person) }
        guard let entry = try object.decoded(as: TimeEntry.self, by: decoder) else {
            return (SubmissionState(entry: .tombstone, ledger: ledger), person)
        }
        var ledger = ledger
        let isUntold = ledger == nil && !isAnothers && entry.backendId != nil
        if isUntold {
            // It was made of a record, which is changed and not written a second time.
            ledger = Ledger()
            ledger?.backendID = entry.backendId
        }
        var state = SubmissionState(entry: .live(entry, editPosition: object.editPosition), ledger: ledger)
        state.isAnswered =
            isUntold && entry.status.isHandedIn && entry.status != .submitted && object.position > object.editPosition
        state.isAnothers = isAnothers
        state.isPersonUnknown = person == nil
        let mayBeSubmitted = entry.submitRequested ?? entry.status.isHandedIn
        guard mayBeSubmitted, person != nil, !isAnothers, !input.isObservation else {
            return (state, person)
        }
        state.isChecked = false
        return (state, person)
    }

    /// Looks whether the entry can be submitted, and as what.
    private mutating func check(
        _ state: inout SubmissionState, _ key: ObjectKey, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws {
        state.isChecked = true
        guard case .live(let entry, _) = state.entry else { return }
        let confirmed = state.ledger?.confirmed?.wanted
        (state.wanted, state.problems) = try wanted(
            entry, over: confirmed, key, environment, isFresh: false, &connection)
        if !state.problems.isEmpty {
            // A refusal is not made from what was read a while ago.
            (state.wanted, state.problems) = try wanted(
                entry, over: confirmed, key, environment, isFresh: true, &connection)
        }
    }

    /// - Parameter confirmed: What the back end is known to hold. What it holds in a context of the same template, and
    ///   nobody can choose here, no person has taken away: it stays.
    private mutating func wanted(
        _ entry: TimeEntry, over confirmed: Wanted?, _ key: ObjectKey, _ environment: EnvironmentID, isFresh: Bool,
        _ connection: inout Connection
    ) throws -> (Wanted?, problems: [String]) {
        let objects = try reporting.objects(
            realm: key.realm, in: environment, isFresh: isFresh, directory: &directory, on: &connection)
        let textLimit = try reporting.textLimit(
            in: environment, revision: callerRevision(of: environment), adapters, on: &connection)
        var problems = EntryRules.problems(of: entry, in: objects, textLimit: textLimit)
        var references: [String: String] = [:]
        for selection in EntryRules.selections(of: entry, in: objects) {
            let found = selection.nodes.compactMap { objects.nodes[$0]?.referenceId }
            if found.count > 1 { problems.append("Only one \(selection.name) can be selected") }
            references[selection.name] = found.first
        }
        if let confirmed, confirmed.fields.reportingTemplate == entry.reportingTemplate {
            let contexts = entry.reportingTemplate.flatMap { objects.templates[$0]?.reportingContexts } ?? []
            let names = Set(contexts.compactMap { objects.contexts[$0]?.name })
            for (name, reference) in confirmed.references where references[name] == nil && names.contains(name) {
                if objects.nodes.values.contains(where: { $0.referenceId == reference }) { continue }
                references[name] = reference
            }
        }
        guard problems.isEmpty, let day = entry.entryDate, let seconds = EntryRules.seconds(of: entry) else {
            return (nil, problems)
        }
        return (
            Wanted(day: day, durationSeconds: seconds, text: entry.text, references: references, fields: entry), []
        )
    }

    private func next(
        _ step: SubmissionDecision.Step, _ key: ObjectKey, _ person: BackendPerson?, _ sent: SentAttempt?,
        _ started: ContinuousClock.Instant
    ) -> Disposition<Call> {
        switch step {
        case .finished: return .finished
        // `check` is what `decide` has done by now.
        case .again, .check: return .again
        case .dead(let reason): return .dead(reason: reason)
        case .park(let reason, let after, let cause): return .park(reason: reason, after: after, cause: cause)
        case .call(let call):
            guard let person else { return .dead(reason: ParkedReason.unknownPerson) }
            // A write that is sent by then has ended when the lease does.
            let last = started + rule.lease - adapters.callMax
            return .call(
                Call(
                    submission: call, marker: EntryMarker.marker(of: key.id), person: person,
                    before: WriteDeadline(last), sent: sent),
                startBefore: last)
        }
    }
}

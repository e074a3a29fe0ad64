import BackendConnections
import BackendProtocol
import Essentials
import FoundationEssentials
import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Loads the state of entries, decides with `SubmissionRule`, and writes the decisions.
struct EntryHandler: Handler {
    struct Call: Sendable {
        let submission: SubmissionCall
        let marker: String
        let person: BackendPerson
        /// The deadline for sending a write, which then ends before the lease does.
        let before: WriteDeadline
        let sent: SentAttempt?

        func answer(_ result: SubmissionResult) -> CallResult {
            CallResult(result: result, version: submission.version, sent: sent)
        }
    }

    struct CallResult: Sendable {
        let result: SubmissionResult
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
        _ inputs: [WorkItem<CallResult>], in environment: EnvironmentID, batch: inout WriteBatch,
        on connection: inout Connection
    ) throws -> [Disposition<Call>] {
        let started = ContinuousClock.now
        reporting.beginBatch()
        guard let loaded = try load(inputs, in: environment, on: &connection) else {
            // Entries of an environment without a back end are submitted by its integration.
            return inputs.map { _ in .finished }
        }
        var decisions = BatchDecisions()
        var dispositions = inputs.map { _ in Disposition<Call>.finished }
        // Entries are decided before their observations.
        let observations = inputs.indices.filter { inputs[$0].isObservation }
        for index in inputs.indices.filter({ !inputs[$0].isObservation }) + observations {
            guard let key = loaded.keys[index] else { continue }
            batch.expect(key, at: loaded.objects[key]?.position ?? 0, decision: index)
            if let reason = decisions.conflict(of: key) {
                dispositions[index] = .deferred(reason: reason, after: rule.retryMin, cause: .planned)
                continue
            }
            do {
                let (step, person, sent) = try decide(
                    index, inputs[index], key, loaded, &decisions, in: environment, on: &connection)
                dispositions[index] = disposition(of: step, key, person, sent, started)
            } catch let error as StoredJSONError {
                dispositions[index] = .deadLettered(reason: error.description)
            }
        }
        try log(decisions.unchanged, in: environment, &decisions.writes, on: &connection)
        try decisions.writes.write(to: &batch, over: loaded.objects, environment, connection: &connection)
        return dispositions
    }

    /// Returns `nil` if the environment has no back end.
    private mutating func load(
        _ inputs: [WorkItem<CallResult>], in environment: EnvironmentID, on connection: inout Connection
    ) throws -> LoadedBatch? {
        let realms = try directory.ids(
            of: Set(inputs.flatMap { [$0.subject.realm, $0.subject.entryRealm].compactMap(\.self) }), in: environment,
            create: false, on: &connection)
        let keys = inputs.map { input in
            input.subject.entryRealm.flatMap { realms[$0] }.map {
                ObjectKey(realm: $0, kind: .timeEntry, id: input.subject.id)
            }
        }
        // An event of the entry itself does not concern its observation.
        let observationKeys = inputs.map { input in
            (input.isObservation ? realms[input.subject.realm] : nil).map {
                ObjectKey(realm: $0, kind: .seenRecord, id: input.subject.id)
            }
        }
        let results = try connection.run([
            RealmObject.load((keys + observationKeys).compactMap { $0 }, in: environment),
            EntryStore.loadLedgers(inputs.map(\.subject.id), in: environment),
            BackendConfiguration.revision(in: environment), EntryStore.loadRestore,
        ])
        guard let revision = try results[2].first?.decode(Int64.self) else { return nil }
        revisions[environment] = revision
        return LoadedBatch(
            keys: keys, observationKeys: observationKeys, objects: try RealmObject.byKey(results[0]),
            ledgers: try EntryStore.ledgers(results[1], sent: Self.sent(inputs)),
            restore: try EntryStore.restore(results[3]))
    }

    /// Decides one input and adds its writes to the batch.
    private mutating func decide(
        _ index: Int, _ input: WorkItem<CallResult>, _ key: ObjectKey, _ loaded: LoadedBatch,
        _ decisions: inout BatchDecisions, in environment: EnvironmentID, on connection: inout Connection
    ) throws -> (SubmissionDecision.Step, BackendPerson?, SentAttempt?) {
        let stored = loaded.ledgers[key.id]
        let isForeignID = stored.map { $0.realm != key.realm } ?? false
        let ledger = isForeignID ? nil : try stored?.ledger.get()
        var (state, person) = try state(
            loaded.objects[key], ledger, isForeignID, input, key, in: environment, on: &connection)
        state.canCall = input.canCall
        try loadObjects(for: input.result, into: &state, key, environment, &connection)
        var encoded = input.sent?.encoded
        var decision: SubmissionDecision
        if input.isObservation {
            let object = loaded.observationKeys[index].flatMap { loaded.objects[$0] }
            decision = try observe(object, state, input, key, environment, &connection)
        } else {
            decision = decide(state, input)
        }
        if decision.step == .validate {
            try validate(&state, key, environment, &connection)
            state.apply(loaded.restore)
            if let desired = state.desired, let fields = loaded.objects[key]?.fields {
                encoded = EncodedRecord(desired, fields: fields)
            }
            decision = decide(state, input)
        }
        decision = try protectingSharedRecord(decision, about: state, input, key, environment, &connection)
        if decision.ledger != nil { decisions.ledgerRealms[key.id] = key.realm }
        decisions.writes.add(
            decision, about: state, key: key, version: stored?.version ?? 0, encoded: encoded,
            record: AttemptRecord(decision, of: input.result, trace: input.trace), decision: index,
            now: Timestamp.now())
        if input.isRetry, let entry = EntryLogRule.UnchangedEntry(decision, about: state, entry: key.id) {
            decisions.unchanged.append((entry, key, index))
        }
        return (decision.step, person, SentAttempt(decision, encoded, realm: key.realm))
    }

    /// Returns the attempts whose results are among the inputs.
    private static func sent(_ inputs: [WorkItem<CallResult>]) -> [UUID: SentAttempt] {
        var sent: [UUID: SentAttempt] = [:]
        for input in inputs { if let attempt = input.sent { sent[input.subject.id] = attempt } }
        return sent
    }

    func decide(_ state: SubmissionState, _ input: WorkItem<CallResult>) -> SubmissionDecision {
        rule.decide(state, input.ruleOrigin, attemptCount: input.attemptCount)
    }

    func callerRevision(of environment: EnvironmentID) -> Int64 { revisions[environment] ?? 0 }

    func caller(
        on connection: inout Connection, for environment: EnvironmentID
    ) throws -> @Sendable (Call) async -> CallResult {
        let caller: SubmissionCaller
        do {
            caller = SubmissionCaller(backend: try adapters.adapter(of: environment, on: &connection))
        } catch let error as MissingBackend {
            throw CallerUnavailable(reason: error.description)
        }
        return { call in
            let result = await caller.call(
                call.submission, marker: call.marker, person: call.person, before: call.before)
            return call.answer(result)
        }
    }

    func rates(on connection: inout Connection, for environment: EnvironmentID) throws -> CallRateLimits {
        try EntryStore.rates(connection.run(BackendConfiguration.rateLimits(of: environment)))
    }

    func resultWhenSkipped(_ call: Call) -> CallResult? { call.answer(.notMade) }

    func kind(of call: Call) -> CallKind {
        switch call.submission.action {
        case .create, .update, .delete: .write
        case .find: .read
        }
    }

    // MARK: State

    private mutating func state(
        _ object: RealmObject?, _ ledger: Ledger?, _ isForeignID: Bool, _ input: WorkItem<CallResult>, _ key: ObjectKey,
        in environment: EnvironmentID, on connection: inout Connection
    ) throws -> (SubmissionState, BackendPerson?) {
        let person = try input.subject.entryRealm?.email.flatMap { email in
            try reporting.person(email, in: environment, on: &connection)
        }
        guard let object else { return (SubmissionState(entry: .missing, ledger: ledger), person) }
        guard let entry = try object.decoded(as: TimeEntry.self, by: decoder) else {
            return (SubmissionState(entry: .tombstone, ledger: ledger), person)
        }
        var ledger = ledger
        let lacksLedger = ledger == nil && !isForeignID && entry.backendId != nil
        if lacksLedger {
            // The entry was created from a record, which is updated and not created again.
            ledger = Ledger()
            ledger?.backendID = entry.backendId
        }
        var state = SubmissionState(entry: .live(entry, editPosition: object.editPosition), ledger: ledger)
        state.isLedgerLost =
            lacksLedger && entry.status.isHandedIn && entry.status != .submitted
            && object.position > object.editPosition
        state.isForeignID = isForeignID
        state.isPersonUnknown = person == nil
        let mayBeSubmitted = entry.submitRequested ?? entry.status.isHandedIn
        guard mayBeSubmitted, person != nil, !isForeignID, !input.isObservation else {
            return (state, person)
        }
        state.isValidated = false
        return (state, person)
    }

    /// Determines the entry's problems, or its desired record.
    private mutating func validate(
        _ state: inout SubmissionState, _ key: ObjectKey, _ environment: EnvironmentID, _ connection: inout Connection
    ) throws {
        state.isValidated = true
        guard case .live(let entry, _) = state.entry else { return }
        let confirmed = state.ledger?.confirmed?.desired
        (state.desired, state.problems) = try desired(
            entry, over: confirmed, key, environment, isFresh: false, &connection)
        if !state.problems.isEmpty {
            // A refusal must not be based on cached reporting data.
            (state.desired, state.problems) = try desired(
                entry, over: confirmed, key, environment, isFresh: true, &connection)
        }
    }

    /// - Parameter confirmed: The confirmed record. Its choices in contexts of the same template that are no longer
    ///   available to the person are kept, because no person removed them.
    private mutating func desired(
        _ entry: TimeEntry, over confirmed: DesiredRecord?, _ key: ObjectKey, _ environment: EnvironmentID,
        isFresh: Bool, _ connection: inout Connection
    ) throws -> (DesiredRecord?, problems: [String]) {
        let objects = try reporting.objects(
            realm: key.realm, in: environment, isFresh: isFresh, directory: &directory, on: &connection)
        let textLimit = try reporting.textLimit(
            in: environment, revision: callerRevision(of: environment), adapters, on: &connection)
        let problems = EntryRules.problems(of: entry, in: objects, textLimit: textLimit)
        var references: [String: String] = [:]
        for selection in objects.selections(of: entry) {
            references[selection.name] = selection.nodes.first.flatMap { objects.nodes[$0]?.referenceId }
        }
        if let confirmed, confirmed.fields.reportingTemplate == entry.reportingTemplate {
            let contexts = entry.reportingTemplate.flatMap { objects.templates[$0]?.reportingContexts } ?? []
            let names = Set(contexts.compactMap { objects.contexts[$0]?.name })
            for (name, reference) in confirmed.references where references[name] == nil && names.contains(name) {
                if objects.nodes.values.contains(where: { $0.referenceId == reference }) { continue }
                references[name] = reference
            }
        }
        guard problems.isEmpty, let day = entry.entryDate, let seconds = entry.seconds else {
            return (nil, problems)
        }
        return (
            DesiredRecord(day: day, durationSeconds: seconds, text: entry.text, references: references, fields: entry),
            []
        )
    }

    private func disposition(
        of step: SubmissionDecision.Step, _ key: ObjectKey, _ person: BackendPerson?, _ sent: SentAttempt?,
        _ started: ContinuousClock.Instant
    ) -> Disposition<Call> {
        switch step {
        case .finished: return .finished
        // `decide` has already validated the entry.
        case .reprocess, .validate: return .reprocess
        case .deadLettered(let reason): return .deadLettered(reason: reason)
        case .deferred(let reason, let after, let cause): return .deferred(reason: reason, after: after, cause: cause)
        case .call(let call):
            guard let person else { return .deadLettered(reason: DeferralReason.unknownPerson) }
            // A write that is sent before this time ends before the lease does.
            let last = started + rule.lease - adapters.callMax
            return .call(
                Call(
                    submission: call, marker: EntryMarker.marker(of: key.id), person: person,
                    before: WriteDeadline(last), sent: sent), startBefore: last)
        }
    }
}

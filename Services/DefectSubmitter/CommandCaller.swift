import BackendProtocol
import Compass
import Essentials
import Model

/// Performs a command: an edit session from its start to its end, including its failures.
struct CommandCaller: Sendable {
    let tracker: any RecordEditing
    /// No write is sent after this time, because another worker may then own the command.
    let deadline: WriteDeadline

    /// A command with its record.
    struct Job {
        let command: DefectCommand
        let record: String
        let values: [FieldValue]
        /// Whether an earlier attempt has an unknown outcome.
        let isUncertain: Bool

        init(_ command: DefectCommand, _ record: String, isUncertain: Bool) {
            self.command = command
            self.record = record
            self.isUncertain = isUncertain
            values = command.fields.sorted { $0.key < $1.key }.map { FieldValue($0.key, $0.value) }
        }

        /// The values that are written when the session is opened, because mandatory fields and lists depend on them. A
        /// field of `base` is written only by the commit, so that the session shows its committed value for the
        /// comparison.
        var sessionValues: [FieldValue] {
            command.operation.isReading ? values : values.filter { command.base[$0.name] == nil }
        }

        /// The result if the record does not exist.
        var missingRecordResult: ActionResult {
            isUncertain
                ? .ambiguous(["Record \(record) no longer exists"]) : .refused(["Record \(record) does not exist"])
        }

        func conflict(_ messages: [String]) -> ActionResult {
            isUncertain ? .ambiguous(messages) : .conflict(messages)
        }
    }

    func call(_ action: CommandAction) async -> ActionResult {
        do throws(BackendError) {
            switch action {
            case .read(let request): return try await read(request)
            case .openNew(let command): return try await openNew(command)
            case .revert(let record):
                try await revert(record)
                return .reverted
            case .perform(let command, let record, let isNew, let isUncertain, let session):
                let job = Job(command, record, isUncertain: isUncertain)
                if isUncertain, command.operation != .delete { try await revert(record) }
                if isNew { return try await performNew(job, session) }
                let result = command.operation == .delete ? try await delete(job) : try await edit(job)
                guard case .conflict(let messages, _) = result else { return result }
                return .conflict(messages, detail: await currentDetail(of: job))
            }
        } catch {
            return ActionResult(error, isUncertain: action.mayHaveEffects)
        }
    }

    /// Ends the person's edit session. A late call would end the session of another worker.
    func revert(_ record: String) async throws(BackendError) {
        try deadline.check()
        try await tracker.revert(record)
    }

    private func openNew(_ command: DefectCommand) async throws(BackendError) -> ActionResult {
        let record = try await tracker.openNew(before: deadline)
        return .opened(record: record.id, session: record)
    }

    private func performNew(_ job: Job, _ session: Record?) async throws(BackendError) -> ActionResult {
        guard job.isUncertain else { return await finish(job, before: nil, session) }
        if job.command.operation.isReading { return .neverSaved }
        return try await tracker.record(job.record) == nil ? .neverSaved : .done(record: job.record)
    }

    // MARK: Existing records

    private func edit(_ job: Job) async throws(BackendError) -> ActionResult {
        guard let record = try await tracker.record(job.record) else { return job.missingRecordResult }
        let destination: String?
        switch try await inspect(record.values, job) {
        case .finished(let result): return result
        case .editable(let state): destination = state
        }
        let session = try await tracker.open(
            job.record, action: job.command.actionName, job.sessionValues, before: deadline)
        switch await compare(session, job, destination: destination) {
        case .finished(let result): return result
        case .editable(let session): return await finish(job, before: record.values, session)
        }
    }

    /// The result of comparing a record, or its edit session.
    enum Inspection<Value> {
        case finished(ActionResult)
        case editable(Value)
    }

    /// Compares the record before an edit session.
    ///
    /// - Returns: The state that the command's action leads to.
    private func inspect(_ record: [String: String], _ job: Job) async throws(BackendError) -> Inspection<String?> {
        let command = job.command
        if command.operation.isReading { return .editable(nil) }
        let hasDesiredValues = ComparisonRule.hasDesiredValues(command.fields, record)
        let conflicts = ComparisonRule.conflicts(base: command.base, desired: command.fields, record)
        guard command.operation == .changeState else {
            if hasDesiredValues { return .finished(.done(record: job.record)) }
            return conflicts.isEmpty ? .editable(nil) : .finished(job.conflict(conflicts))
        }
        let type = try await tracker.recordType()
        let (name, state) = (command.actionName ?? "", record[ComparisonRule.state] ?? "")
        let action = type.actions.first { $0.name == name && $0.kind == "_CHANGE_STATE" }
        if job.isUncertain, hasDesiredValues, action?.destinationState == state {
            return .finished(.done(record: job.record))
        }
        if !conflicts.isEmpty { return .finished(job.conflict(conflicts)) }
        if let action, action.sourceStates.contains(state) { return .editable(action.destinationState) }
        if job.isUncertain { return .finished(.ambiguous(["The state is '\(state)'"])) }
        let others = type.changes(from: state).map(\.name).sorted().joined(separator: ", ")
        return .finished(.refused(["Action '\(name)' is not allowed in state '\(state)'; allowed: \(others)"]))
    }

    private func delete(_ job: Job) async throws(BackendError) -> ActionResult {
        if !job.command.base.isEmpty {
            guard let record = try await tracker.record(job.record) else { return .done(record: job.record) }
            let conflicts = ComparisonRule.conflicts(base: job.command.base, desired: [:], record.values)
            if !conflicts.isEmpty { return .conflict(conflicts) }
        }
        do throws(BackendError) {
            try await tracker.delete(job.record, action: job.command.actionName ?? "Delete", before: deadline)
            return .done(record: job.record)
        } catch .refused(let messages) {
            // The rejection proves that the record exists, also after an uncertain attempt.
            return .refused(messages)
        }
    }

    // MARK: Within an edit session

    /// - Parameters:
    ///   - before: The record as it was when the session was begun; `nil`: a new one.
    ///   - session: The record as it is in the session.
    private func finish(_ job: Job, before: [String: String]?, _ session: Record?) async -> ActionResult {
        do throws(BackendError) {
            if job.command.operation.isReading { return try await readSession(job, session) }
            let missing = ComparisonRule.missing(session?.mandatory ?? [:], desired: job.command.fields)
            if !missing.isEmpty {
                try await revert(job.record)
                return .refused(missing)
            }
            return .done(record: try await tracker.commit(job.record, job.values, before: deadline).id)
        } catch .refused(let messages) {
            return await refusal(messages, job, before: before)
        } catch {
            return ActionResult(error, isUncertain: true)
        }
    }

    /// Returns the result of a rejected commit, or of a rejected read of choices. If another user's commit was faster,
    /// the record has changed; otherwise the values are invalid.
    private func refusal(_ messages: [String], _ job: Job, before: [String: String]?) async -> ActionResult {
        do throws(BackendError) {
            try await revert(job.record)
            guard let before, !job.command.operation.isReading,
                let now = try await tracker.record(job.record)?.values, now != before
            else { return .refused(messages) }
            let command = job.command
            let names = Set(command.fields.keys).union(command.operation == .changeState ? [ComparisonRule.state] : [])
            let base = before.filter { names.contains($0.key) }.merging(command.base) { $1 }
            let conflicts = ComparisonRule.conflicts(base: base, desired: command.fields, now)
            return conflicts.isEmpty ? .concurrentCommit : .conflict(conflicts)
        } catch {
            return ActionResult(error, isUncertain: true)
        }
    }
}

extension Record {
    /// The values of the fields, by their names. One that cannot be read is U+FFFD, so that it equals no other value.
    var values: [String: String] {
        Dictionary(fields.map { ($0.name, $0.isReadable ? $0.value : "\u{FFFD}") }) { first, _ in first }
    }

    /// The fields that must have a value, with those that they have. A value that cannot be read is one.
    var mandatory: [String: String] {
        Dictionary(
            fields.filter { $0.requiredness == .mandatory && $0.isReadable }.map { ($0.name, $0.value) }
        ) { first, _ in first }
    }
}

extension ActionResult {
    /// - Parameter isUncertain: Something may have been done before, or may be left open.
    init(_ error: BackendError, isUncertain: Bool) {
        self =
            switch error {
            case .refused(let messages): isUncertain ? .ambiguous(messages) : .refused(messages)
            case .notProcessed(let reason, let retryAfter):
                isUncertain
                    ? .unknown(reason: reason, retryAfter: retryAfter)
                    : .notProcessed(reason: reason, retryAfter: retryAfter)
            case .outcomeUnknown(let reason, let retryAfter): .unknown(reason: reason, retryAfter: retryAfter)
            case .unauthorized(let reason): .unauthorized(reason: reason, isUncertain: isUncertain)
            // An attempt was made before. The status `unknown` ends the retries of a slow tracker.
            case .deadlineExceeded:
                isUncertain
                    ? .unknown(reason: "the deadline was exceeded", retryAfter: nil) : .notSent(isUncertain: false)
            }
    }
}

/// Detects changes between the read of a record and the start of its edit session.
extension CommandCaller {
    /// Compares a session's record with `base`.
    ///
    /// Differences are changes of another user, or values that the action writes itself. Only the committed record
    /// distinguishes them: the session is reverted and the record read again. If the record equals `base`, it is edited
    /// without another comparison.
    ///
    /// - Parameter destination: The state that the action leads to, which a session may already show.
    /// - Returns: The record as it is in the session.
    func compare(_ session: Record, _ job: Job, destination: String?) async -> Inspection<Record> {
        var desired = job.command.fields
        desired[ComparisonRule.state] = desired[ComparisonRule.state] ?? destination
        let base = job.command.operation.isReading ? [:] : job.command.base
        if ComparisonRule.conflicts(base: base, desired: desired, session.values).isEmpty {
            return .editable(session)
        }
        do throws(BackendError) {
            try await revert(job.record)
        } catch {
            return .finished(ActionResult(error, isUncertain: true))
        }
        do throws(BackendError) {
            guard let record = try await tracker.record(job.record) else { return .finished(job.missingRecordResult) }
            let conflicts = ComparisonRule.conflicts(base: base, desired: job.command.fields, record.values)
            guard conflicts.isEmpty else { return .finished(job.conflict(conflicts)) }
            return .editable(
                try await tracker.open(job.record, action: job.command.actionName, job.values, before: deadline))
        } catch {
            return .finished(ActionResult(error, isUncertain: job.isUncertain))
        }
    }
}

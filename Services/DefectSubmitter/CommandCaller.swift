import BackendProtocol
import Compass
import Essentials
import Model

/// Carries a command out: an edit session from its beginning to its end, which is also where it goes wrong.
struct CommandCaller: Sendable {
    let tracker: any RecordEditing
    /// No write is sent later: somebody else may look after the command by then.
    let deadline: WriteDeadline

    /// A command with the record that it is done with.
    struct Job {
        let command: DefectCommand
        let record: String
        let values: [FieldValue]
        /// It was tried before, and nobody knows how that ended.
        let isUncertain: Bool

        init(_ command: DefectCommand, _ record: String, isUncertain: Bool) {
            self.command = command
            self.record = record
            self.isUncertain = isUncertain
            values = command.fields.sorted { $0.key < $1.key }.map { FieldValue($0.key, $0.value) }
        }

        /// What is written into a session at its beginning, for mandatory fields and lists to depend on: a field of
        /// `base` stays as it is till the commit, so that the session shows what it is compared with.
        var shown: [FieldValue] {
            command.operation == .choices ? values : values.filter { command.base[$0.name] == nil }
        }

        /// What it comes to when there is no record.
        var absence: CommandAnswer {
            isUncertain
                ? .unclear(["The record \(record) is not there any more"]) : .refused(["There is no record \(record)"])
        }

        func conflict(_ messages: [String]) -> CommandAnswer { isUncertain ? .unclear(messages) : .conflict(messages) }
    }

    func call(_ action: CommandAction) async -> CommandAnswer {
        do throws(BackendError) {
            switch action {
            case .begin(let command): return try await begin(command)
            case .revert(let record):
                try await revert(record)
                return .reverted
            case .carryOut(let command, let record, let isNew, let isUncertain, let mandatory):
                let job = Job(command, record, isUncertain: isUncertain)
                if isUncertain, command.operation != .delete { try await revert(record) }
                if isNew { return try await carryOutNew(job, mandatory) }
                return command.operation == .delete ? try await delete(job) : try await edit(job)
            }
        } catch {
            return CommandAnswer(error, isUncertain: action.leavesSomething)
        }
    }

    /// A late one would end somebody else's session.
    func revert(_ record: String) async throws(BackendError) {
        try deadline.check()
        try await tracker.revert(record)
    }

    // MARK: New records

    private func begin(_ command: DefectCommand) async throws(BackendError) -> CommandAnswer {
        let record = try await tracker.openNew(before: deadline)
        return .begun(record: record.id, mandatory: record.mandatory)
    }

    private func carryOutNew(_ job: Job, _ mandatory: [String: String]) async throws(BackendError) -> CommandAnswer {
        guard job.isUncertain else { return await finish(job, before: nil, mandatory) }
        if job.command.operation == .choices { return .neverSaved }
        return try await tracker.record(job.record) == nil ? .neverSaved : .done(record: job.record)
    }

    // MARK: Records that are there

    private func edit(_ job: Job) async throws(BackendError) -> CommandAnswer {
        guard let record = try await tracker.record(job.record) else { return job.absence }
        let destination: String?
        switch try await look(at: record.values, job) {
        case .over(let answer): return answer
        case .editable(let state): destination = state
        }
        let session = try await tracker.open(
            job.record, action: job.command.actionName, job.shown, before: deadline)
        switch await compare(session, job, destination: destination) {
        case .over(let answer): return answer
        case .editable(let mandatory): return await finish(job, before: record.values, mandatory)
        }
    }

    /// What a record's values, or those of its edit session, come to.
    enum Look<Found> {
        case over(CommandAnswer)
        case editable(Found)
    }

    /// What the record says without being edited.
    ///
    /// - Returns: The state that the command's action leads to.
    private func look(at record: [String: String], _ job: Job) async throws(BackendError) -> Look<String?> {
        let command = job.command
        if command.operation == .choices { return .editable(nil) }
        let isAsWanted = ComparisonRule.isAsWanted(command.fields, record)
        let conflicts = ComparisonRule.conflicts(base: command.base, wanted: command.fields, record)
        guard command.operation == .changeState else {
            if isAsWanted { return .over(.done(record: job.record)) }
            return conflicts.isEmpty ? .editable(nil) : .over(job.conflict(conflicts))
        }
        let type = try await tracker.recordType()
        let (name, state) = (command.actionName ?? "", record[ComparisonRule.state] ?? "")
        let action = type.actions.first { $0.name == name && $0.kind == "_CHANGE_STATE" }
        if job.isUncertain, isAsWanted, action?.destinationState == state { return .over(.done(record: job.record)) }
        if !conflicts.isEmpty { return .over(job.conflict(conflicts)) }
        if let action, action.sourceStates.contains(state) { return .editable(action.destinationState) }
        if job.isUncertain { return .over(.unclear(["The state is '\(state)'"])) }
        let others = type.changes(from: state).map(\.name).sorted().joined(separator: ", ")
        return .over(.refused(["'\(name)' cannot be done in the state '\(state)'; there are: \(others)"]))
    }

    private func delete(_ job: Job) async throws(BackendError) -> CommandAnswer {
        if !job.command.base.isEmpty {
            guard let record = try await tracker.record(job.record) else { return .done(record: job.record) }
            let conflicts = ComparisonRule.conflicts(base: job.command.base, wanted: [:], record.values)
            if !conflicts.isEmpty { return .conflict(conflicts) }
        }
        do throws(BackendError) {
            try await tracker.delete(job.record, action: job.command.actionName ?? "Delete", before: deadline)
            return .done(record: job.record)
        } catch .refused(let messages) {
            // It is there, whatever was tried before.
            return .refused(messages)
        }
    }

    // MARK: Within an edit session

    /// - Parameters:
    ///   - before: The record as it was when the session was begun; `nil`: a new one.
    ///   - mandatory: The fields that must have a value in the session, with those that they have.
    private func finish(
        _ job: Job, before: [String: String]?, _ mandatory: [String: String]
    ) async -> CommandAnswer {
        do throws(BackendError) {
            if job.command.operation == .choices {
                let lists = try await lists(job)
                try await revert(job.record)
                return .choices(lists.choices, messages: lists.messages)
            }
            let missing = ComparisonRule.missing(mandatory, wanted: job.command.fields)
            if !missing.isEmpty {
                try await revert(job.record)
                return .refused(missing)
            }
            return .done(record: try await tracker.commit(job.record, job.values, before: deadline).id)
        } catch .refused(let messages) {
            return await refusal(messages, job, before: before)
        } catch {
            return CommandAnswer(error, isUncertain: true)
        }
    }

    private func lists(_ job: Job) async throws(BackendError) -> ChoiceLists {
        var lists = ChoiceLists()
        for name in job.command.choicesOf where lists.choices[name] == nil {
            try deadline.check()
            guard let field = try await tracker.field(name, of: job.record) else { continue }
            lists.add(field.choices ?? [], of: name)
        }
        return lists
    }

    /// A commit is refused for what it says, or because somebody else's was faster: then what they changed tells.
    private func refusal(_ messages: [String], _ job: Job, before: [String: String]?) async -> CommandAnswer {
        do throws(BackendError) {
            try await revert(job.record)
            guard let before, let now = try await tracker.record(job.record)?.values, now != before else {
                return .refused(messages)
            }
            let command = job.command
            let names = Set(command.fields.keys).union(command.operation == .changeState ? [ComparisonRule.state] : [])
            let base = before.filter { names.contains($0.key) }.merging(command.base) { $1 }
            let conflicts = ComparisonRule.conflicts(base: base, wanted: command.fields, now)
            return conflicts.isEmpty ? .overtaken : .conflict(conflicts)
        } catch {
            return CommandAnswer(error, isUncertain: true)
        }
    }
}

extension Record {
    /// The values of the fields, by their names.
    var values: [String: String] { Dictionary(fields.map { ($0.name, $0.value) }) { first, _ in first } }

    /// The fields that must have a value, with those that they have.
    var mandatory: [String: String] {
        Dictionary(fields.filter { $0.requiredness == .mandatory }.map { ($0.name, $0.value) }) { first, _ in first }
    }
}

extension CommandAnswer {
    /// - Parameter isUncertain: Something may have been done before, or may be left open.
    init(_ error: BackendError, isUncertain: Bool) {
        self =
            switch error {
            case .refused(let messages): isUncertain ? .unclear(messages) : .refused(messages)
            case .notProcessed(let reason, let retryAfter):
                isUncertain
                    ? .unknown(reason: reason, retryAfter: retryAfter)
                    : .notProcessed(reason: reason, retryAfter: retryAfter)
            case .outcomeUnknown(let reason, let retryAfter): .unknown(reason: reason, retryAfter: retryAfter)
            case .unauthorized(let reason): .unauthorized(reason: reason, isUncertain: isUncertain)
            // Something was called before: a tracker that takes so long is not asked for ever.
            case .tooLate:
                isUncertain ? .unknown(reason: "it took too long", retryAfter: nil) : .notMade(isUncertain: false)
            }
    }
}

import BackendProtocol
import Compass
import Model

/// Detects changes between the read of a record and the start of its edit session.
extension CommandCaller {
    /// Compares a session's record with `base`.
    ///
    /// Differences are changes of another user, or values that the action writes itself. Only the committed record
    /// distinguishes them: the session is reverted and the record read again. If the record equals `base`, it is edited
    /// without another comparison.
    ///
    /// - Parameter destination: The state that the action leads to, which a session may already show.
    /// - Returns: The mandatory fields of the session with their values.
    func compare(_ session: Record, _ job: Job, destination: String?) async -> Inspection<[String: String]> {
        var desired = job.command.fields
        desired[ComparisonRule.state] = desired[ComparisonRule.state] ?? destination
        let base = job.command.operation == .choices ? [:] : job.command.base
        if ComparisonRule.conflicts(base: base, desired: desired, session.values).isEmpty {
            return .editable(session.mandatory)
        }
        do throws(BackendError) {
            try await revert(job.record)
        } catch {
            return .finished(CommandResult(error, isUncertain: true))
        }
        do throws(BackendError) {
            guard let record = try await tracker.record(job.record) else { return .finished(job.missingRecordResult) }
            let conflicts = ComparisonRule.conflicts(base: base, desired: job.command.fields, record.values)
            guard conflicts.isEmpty else { return .finished(job.conflict(conflicts)) }
            return .editable(
                try await tracker.open(job.record, action: job.command.actionName, job.values, before: deadline)
                    .mandatory)
        } catch {
            return .finished(CommandResult(error, isUncertain: job.isUncertain))
        }
    }
}

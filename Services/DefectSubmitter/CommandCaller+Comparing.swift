import BackendProtocol
import Compass
import Model

/// The record may be another one by the time its edit begins than when it was read.
extension CommandCaller {
    /// Compares a session's record with `base`.
    ///
    /// What differs was saved by somebody else, or is what the action writes by itself. The record alone tells which:
    /// it is read again without the session, and where it is as its person saw it, edited without another look.
    ///
    /// - Parameter destination: The state that the action leads to, which a session may show already.
    /// - Returns: The fields that must have a value in the session, with those that they have.
    func compare(_ session: Record, _ job: Job, destination: String?) async -> Look<[String: String]> {
        var wanted = job.command.fields
        wanted[ComparisonRule.state] = wanted[ComparisonRule.state] ?? destination
        let base = job.command.operation == .choices ? [:] : job.command.base
        if ComparisonRule.conflicts(base: base, wanted: wanted, session.values).isEmpty {
            return .editable(session.mandatory)
        }
        do throws(BackendError) {
            try await revert(job.record)
        } catch {
            return .over(CommandAnswer(error, isUncertain: true))
        }
        do throws(BackendError) {
            guard let record = try await tracker.record(job.record) else { return .over(job.absence) }
            let conflicts = ComparisonRule.conflicts(base: base, wanted: job.command.fields, record.values)
            guard conflicts.isEmpty else { return .over(job.conflict(conflicts)) }
            return .editable(
                try await tracker.open(job.record, action: job.command.actionName, job.values, before: deadline)
                    .mandatory)
        } catch {
            return .over(CommandAnswer(error, isUncertain: job.isUncertain))
        }
    }
}

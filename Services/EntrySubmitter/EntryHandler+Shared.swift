import Model
import Postgres
import ObjectStore
import KeyedWorker

/// Records that two entries have. If the back end cut a record's marker off, the poller sees it as a record without an
/// entry.
extension EntryHandler {
    /// Returns the decision, or the one that leaves the record of another entry as it is: no second entry is made of
    /// it, and it is not deleted with this entry.
    func keepingShared(
        _ decision: SubmissionDecision, about state: SubmissionState, _ input: WorkItem<Answer>, _ key: ObjectKey,
        _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> SubmissionDecision {
        if input.isObservation, case .put(let fields) = decision.entry, let record = fields.backendId {
            let others = try connection.run(EntryStore.others(with: record, than: key, in: environment))
            return others.count == 0 ? decision : SubmissionDecision(step: .finished)
        }
        guard case .call(let call) = decision.step, case .delete(let record) = call.action else { return decision }
        let others = try connection.run(EntryStore.others(with: record, than: key, in: environment))
        // The last one of those that are deleted at the same time deletes the record.
        guard try others.decode(Bool.self).contains(false) else { return decision }
        var state = state
        state.isRecordShared = true
        return decide(state, input)
    }
}

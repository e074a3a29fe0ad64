import KeyedWorker
import Model
import ObjectStore
import Postgres

/// Records with two entries: if the back end truncates a record's marker, the poller reports it as a record without an
/// entry.
extension EntryHandler {
    /// Returns the decision, or one that protects the record of another entry: no second entry is created for it, and
    /// it is not deleted with this entry.
    func protectingSharedRecord(
        _ decision: SubmissionDecision, about state: SubmissionState, _ input: WorkItem<Answer>, _ key: ObjectKey,
        _ environment: EnvironmentID, _ connection: inout Connection
    ) throws -> SubmissionDecision {
        if input.isObservation, case .put(let fields) = decision.entry, let record = fields.backendId {
            let others = try connection.run(EntryStore.others(with: record, than: key, in: environment))
            return others.count == 0 ? decision : SubmissionDecision(step: .finished)
        }
        guard case .call(let call) = decision.step, case .delete(let record) = call.action else { return decision }
        let others = try connection.run(EntryStore.others(with: record, than: key, in: environment))
        // If all entries of the record are being deleted, the last one deletes it.
        guard try others.decode(Bool.self).contains(false) else { return decision }
        var state = state
        state.isRecordShared = true
        return decide(state, input)
    }
}

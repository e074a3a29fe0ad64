import Model
import ObjectStore
import Postgres

extension WorkPlan {
    /// Adds the rolled back decisions, deferrals and releases to the handler's writes.
    func write(to batch: inout WriteBatch, group: String) {
        guard let environment = items.first?.item.environment else { return }
        if !withheld.isEmpty { batch.expect("SELECT realm.miss(\(withheld.sorted().map(Int32.init)))") }
        if !deferrals.isEmpty {
            batch.append(DeferredKeys.deferKeys(deferrals, group: group, environment: environment))
        }
        if !released.isEmpty { batch.append(DeferredKeys.release(released, group: group, environment: environment)) }
    }

    /// Positions of the items' own objects: those that the decisions expected or wrote.
    func positions(of batch: WriteBatch, after outcome: WriteOutcome) -> [Int: Int64] {
        batch.positions(after: outcome).compactMapValues { decision, key, position in
            items.indices.contains(decision) && items[decision].item.subject.kind == key.kind
                && items[decision].item.subject.id == key.id ? position : nil
        }
    }
}

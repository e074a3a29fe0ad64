import Model
import ObjectStore
import Postgres

extension WorkPlan {
    /// Adds to what a handler writes that decisions are taken back, which keys are parked, and which wait no longer.
    func write(to batch: inout WriteBatch, group: String) {
        guard let environment = items.first?.item.environment else { return }
        if !withheld.isEmpty { batch.expect("SELECT realm.miss(\(withheld.sorted().map(Int32.init)))") }
        if !parkings.isEmpty { batch.also(ParkedKeys.park(parkings, group: group, environment: environment)) }
        if !released.isEmpty { batch.also(ParkedKeys.release(released, group: group, environment: environment)) }
    }

    /// The positions of the objects that the items are about: what a decision was made from, or what it wrote.
    func positions(of batch: WriteBatch, after outcome: WriteOutcome) -> [Int: Int64] {
        batch.positions(after: outcome).compactMapValues { decision, key, position in
            items.indices.contains(decision) && items[decision].item.subject.kind == key.kind
                && items[decision].item.subject.id == key.id ? position : nil
        }
    }
}

import Model

@testable import KeyedWorker

/// Deferred keys of events that are no edits.
extension SchedulerSimulation {
    mutating func findDeferred(
        _ items: [ScheduledItem<SimulatedResult>], by number: Int
    ) -> [ScheduledItem<SimulatedResult>] {
        let possible = Set(workers[number].scheduler.possiblyDeferred)
        let deferred = items.filter {
            possible.contains($0.item.subject.description)
                && parked[self.number($0.item.subject, in: $0.item.environment)] != nil
        }
        return workers[number].scheduler.decideAsEdits(Set(deferred.map(\.item.subject.description)))
    }

    /// Edited entries, and deferred ones, are decided as edits; afterwards the edits count as processed.
    mutating func checkEdits(
        _ plan: WorkPlan<SimulatedCall>, _ writes: [SimulatedWrite], missed: Set<Int>, by number: Int
    ) throws {
        for release in plan.released where !missed.contains(release.decision) {
            let entry = writes[release.decision].entry
            if !plan.items[release.decision].item.isEdit, parked[entry] != nil {
                throw failure("entry \(entry) is deferred, and finished as unedited")
            }
        }
        for (index, item) in plan.items.enumerated() {
            let isRolledBack = plan.withheld.contains(index)
            let isPut = plan.deferrals.contains { $0.decision == index } || isRolledBack
            guard isRolledBack || !missed.contains(index), item.item.isEdit || isPut else { continue }
            workers[number].clearUnseenEdits(of: writes[index].entry)
        }
    }
}

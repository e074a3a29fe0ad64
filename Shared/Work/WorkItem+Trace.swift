import Essentials

extension WorkItem {
    /// The item in the next span of its trace, if it has one: what is decided about it is told apart from what led to
    /// it.
    func inSpanOfItsOwn() -> WorkItem {
        guard let trace else { return self }
        var item = self
        item.trace = trace.child(.random(in: 1...UInt64.max))
        return item
    }
}

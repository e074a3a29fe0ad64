import Essentials
import Model

extension WorkItem {
    /// The item in the next span of its trace, if it has one: what is decided about it is told apart from what led to
    /// it.
    ///
    /// - Returns: Also the span, where the trace is recorded.
    func inSpanOfItsOwn() -> (item: WorkItem, span: OpenSpan?) {
        guard let trace else { return (self, nil) }
        let recorder = SpanRecorder.process
        let span = recorder.begin(trace)
        var item = self
        item.trace = span?.context ?? trace.child(recorder.nextID())
        return (item, span)
    }

    /// What a collector is told of its decision.
    func work(of group: String, outcome: String) -> TraceSpan.Work {
        let origin =
            switch self.origin {
            case .event: "event"
            case .retry: "retry"
            case .answer: "answer"
            }
        return .decide(
            group: group, environment: environment.rawValue,
            TraceSpan.Subject(kind: subject.kind.rawValue, id: subject.id), origin: origin, outcome: outcome)
    }
}

extension WorkPlan {
    /// In a word, what became of a decision.
    func outcome(of index: Int, missed: Set<Int>) -> String {
        if withheld.contains(index) { return "park" }
        if missed.contains(index) { return "missed" }
        return switch dispositions[index] {
        case .finished: "finished"
        case .again: "again"
        case .call: "call"
        case .park: "park"
        case .dead: "dead"
        }
    }
}

import Essentials
import Model

extension WorkItem {
    /// The item in a new span of its trace, if it has one, to separate the decision from its cause.
    ///
    /// - Returns: Also the span, if the trace is recorded.
    func withOwnSpan() -> (item: WorkItem, span: OpenSpan?) {
        guard let trace else { return (self, nil) }
        let recorder = SpanRecorder.process
        let span = recorder.begin(trace)
        var item = self
        item.trace = span?.context ?? trace.child(recorder.nextID())
        return (item, span)
    }

    /// The span attributes of the decision.
    func spanWork(of group: String, outcome: String) -> TraceSpan.Work {
        let origin =
            switch self.origin {
            case .event: "event"
            case .retry: "retry"
            case .result: "answer"
            }
        return .decide(
            group: group, environment: environment.rawValue,
            TraceSpan.Subject(kind: subject.kind.rawValue, id: subject.id), origin: origin, outcome: outcome)
    }
}

extension WorkPlan {
    /// The span attribute `outcome` of a decision.
    func outcome(of index: Int, missed: Set<Int>) -> String {
        if withheld.contains(index) { return "deferred" }
        if missed.contains(index) { return "conflict" }
        return switch dispositions[index] {
        case .finished: "finished"
        case .reprocess: "reprocess"
        case .call: "call"
        case .deferred: "deferred"
        case .deadLettered: "dead-lettered"
        }
    }
}

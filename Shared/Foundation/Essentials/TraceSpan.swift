package import FoundationEssentials

/// Something that took time and belongs to a trace, as a collector is told of it.
///
/// It holds nothing that people have written, no address of a person and no secret: what was done and to which object.
package struct TraceSpan: Sendable, Equatable {
    /// What was done.
    package enum Work: Sendable, Equatable {
        /// A request was answered.
        ///
        /// - `route`: the path as it is declared, without what callers put in; `nil`: there is no such path.
        case request(method: String, route: String?, status: Int)
        /// What a request changes was committed, in one transaction with `count - 1` other requests.
        case commit(environment: Int32, count: Int)
        /// An object's state was handed to the broker and confirmed.
        case publish(topic: String, environment: Int32, Subject)
        /// A worker decided what becomes of a key, and committed it.
        ///
        /// - `origin`: what it was decided for: `event`, `retry` or `answer`.
        /// - `outcome`: `finished`, `again`, `call`, `park`, `dead`, or `missed`: it is decided once more.
        case decide(group: String, environment: Int32, Subject, origin: String, outcome: String)
        /// Another system was called over HTTP.
        ///
        /// - `address`: host and port of the URL, without what stands before and behind.
        /// - `failure`: why there is no whole answer.
        case call(method: String, address: String, status: Int?, failure: String?)
    }

    /// The object that something was done for.
    package struct Subject: Sendable, Equatable {
        package let kind: String
        package let id: UUID
        /// `nil`: whatever the object's state is.
        package let position: Int64?

        package init(kind: String, id: UUID, position: Int64? = nil) {
            self.kind = kind
            self.id = id
            self.position = position
        }
    }

    /// Where it is in its trace: the trace's id and its own.
    package let context: TraceContext
    /// The span that led to it; `nil`: the trace begins with it.
    package let parentID: UInt64?
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    package let start: UInt64
    package let end: UInt64
    package let work: Work

    package init(context: TraceContext, parentID: UInt64?, start: UInt64, end: UInt64, work: Work) {
        self.context = context
        self.parentID = parentID
        self.start = start
        self.end = end
        self.work = work
    }
}

/// A span that has begun: `SpanRecorder.end(_:_:)` records it. One that is let go of is not told.
package struct OpenSpan: Sendable, Equatable {
    /// What is done in the span belongs to it, and is told so on its way.
    package let context: TraceContext
    let parentID: UInt64?
    let start: UInt64
}

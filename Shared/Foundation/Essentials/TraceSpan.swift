package import FoundationEssentials

/// A timed operation of a trace, as exported to a collector.
///
/// A span contains the operation and the object's id, never user content, personal addresses or secrets.
package struct TraceSpan: Sendable, Equatable {
    /// The operation.
    package enum Work: Sendable, Equatable {
        /// A request that was handled.
        ///
        /// - `route`: the path as declared, without parameter values; `nil` if no route matches.
        case request(method: String, route: String?, status: Int)
        /// A commit of a request's changes, in one transaction with `count - 1` other requests.
        case commit(environment: Int32, count: Int)
        /// A publication of an object's state, confirmed by the broker.
        case publish(topic: String, environment: Int32, Subject)
        /// A worker's committed result for a key.
        ///
        /// - `origin`: the trigger: `event`, `retry` or `answer`.
        /// - `outcome`: `finished`, `again`, `call`, `park`, `dead`, or `missed` if the version check failed and it is
        ///   retried.
        case decide(group: String, environment: Int32, Subject, origin: String, outcome: String)
        /// A call of another system over HTTP.
        ///
        /// - `address`: host and port of the URL.
        /// - `failure`: the reason why there is no complete response.
        case call(method: String, address: String, status: Int?, failure: String?)
    }

    /// The object that the operation concerns.
    package struct Subject: Sendable, Equatable {
        package let kind: String
        package let id: UUID
        /// The object's position; `nil` if the operation does not depend on it.
        package let position: Int64?

        package init(kind: String, id: UUID, position: Int64? = nil) {
            self.kind = kind
            self.id = id
            self.position = position
        }
    }

    /// The trace's id and the span's own.
    package let context: TraceContext
    /// The parent span; `nil` for the root of the trace.
    package let parentID: UInt64?
    /// Nanoseconds since 1970-01-01T00:00:00Z.
    package let start: UInt64
    package let end: UInt64
    package let work: Work
}

/// A span in progress, which `SpanRecorder.end(_:_:)` records. A span that is never ended is not exported.
package struct OpenSpan: Sendable, Equatable {
    /// The context that operations inside the span propagate.
    package let context: TraceContext
    let parentID: UInt64?
    let start: UInt64
}

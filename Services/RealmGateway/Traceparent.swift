import Essentials
import HTTPTypes

/// The W3C trace context of a request.
enum Traceparent {
    /// - Returns: `nil` when there is none, or the header is not one.
    static func read(_ headers: HTTPFields) -> TraceContext? {
        headers.first { $0.name.canonicalName == "traceparent" }.flatMap { TraceContext($0.value) }
    }
}

package import Essentials
import HTTPTypes
package import Hummingbird

/// Answers a request in the trace that its header `traceparent` tells, or in a new one where that is sampled: what is
/// written and called meanwhile carries `TraceContext.current`. A header that is not one counts as none.
package struct TracingMiddleware<Context: RequestContext>: RouterMiddleware {
    private static var header: HTTPField.Name? { HTTPField.Name("traceparent") }

    let recorder: SpanRecorder

    package init(recorder: SpanRecorder) { self.recorder = recorder }

    @concurrent package func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let told = Self.header.flatMap { request.headers[$0] }.flatMap { TraceContext($0) }
        guard let span = recorder.beginRequest(told) else {
            guard let told else { return try await next(request, context) }
            return try await TraceContext.$current.withValue(told) { try await next(request, context) }
        }
        let response = try await TraceContext.$current.withValue(span.context) { try await next(request, context) }
        let method = RequestMetricsMiddleware<Context>.known(request.method)
        recorder.end(span, .request(method: method, route: context.endpointPath, status: response.status.code))
        return response
    }
}

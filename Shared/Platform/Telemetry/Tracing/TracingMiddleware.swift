package import Essentials
import HTTPTypes
package import Hummingbird

/// Processes a request as part of the trace in its header `traceparent`, or of a new trace if sampled, with
/// `TraceContext.current` set for writes and calls. An invalid header is ignored.
package struct TracingMiddleware<Context: RequestContext>: RouterMiddleware {
    private static var header: HTTPField.Name? { HTTPField.Name("traceparent") }

    let recorder: SpanRecorder

    package init(recorder: SpanRecorder) { self.recorder = recorder }

    @concurrent package func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let incoming = Self.header.flatMap { request.headers[$0] }.flatMap { TraceContext($0) }
        guard let span = recorder.beginRequest(incoming) else {
            guard let incoming else { return try await next(request, context) }
            return try await TraceContext.$current.withValue(incoming) { try await next(request, context) }
        }
        let response = try await TraceContext.$current.withValue(span.context) { try await next(request, context) }
        let method = RequestMetricsMiddleware<Context>.name(of: request.method)
        recorder.end(span, .request(method: method, route: context.endpointPath, status: response.status.code))
        return response
    }
}

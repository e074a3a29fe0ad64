import Essentials
import HTTPTypes
package import Hummingbird
import Metrics
import Synchronization

/// Records the time until the first byte of the response as `http.server.request.duration` (OpenTelemetry's name).
package final class RequestMetricsMiddleware<Context: RequestContext>: RouterMiddleware {
    private struct Key: Hashable {
        let method: String
        let route: String
        let status: Int
    }

    /// A cache of timers: creating one takes the registry's lock and builds its labels.
    private let timers = Mutex<[Key: Metrics.Timer]>([:])

    package init() {}

    private static var standardMethods: [HTTPRequest.Method] { [.get, .head, .post, .put, .patch, .delete, .options] }

    /// Returns the method's name, or `_OTHER` for a non-standard one, which limits the number of series.
    static func name(of method: HTTPRequest.Method) -> String {
        standardMethods.contains(method) ? method.rawValue : "_OTHER"
    }

    @concurrent package func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let start = SteadyClock.nanoseconds()
        let response = try await next(request, context)
        let key = Key(
            method: Self.name(of: request.method), route: context.endpointPath ?? "",
            status: response.status.code)
        let timer = timers.withLock { timers in
            if let timer = timers[key] { return timer }
            let timer = Metrics.Timer(
                label: "http.server.request.duration",
                dimensions: [
                    ("http.request.method", key.method), ("http.route", key.route),
                    ("http.response.status_code", String(key.status)),
                ])
            timers[key] = timer
            return timer
        }
        timer.recordNanoseconds(SteadyClock.nanoseconds() - start)
        return response
    }
}

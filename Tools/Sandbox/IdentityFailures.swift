import HTTPServer
import HTTPTypes
import Hummingbird
import ServiceRuntime

/// Injects the failures of the switches: unavailability and delays. Control routes always work.
struct IdentityFailures: RouterMiddleware {
    typealias Context = BasicRequestContext

    let state: IdentityState

    @concurrent func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let switches = state.switches
        let path = request.uri.path
        guard !path.hasPrefix("/sandbox/"), path.contains(switches.failureAt ?? "/") else {
            return try await next(request, context)
        }
        switch switches.failure ?? .none {
        case .none, .serverError: break
        case .down: throw Problem(.serviceUnavailable, detail: "By the switches.")
        case .slow: try await Task.sleep(for: .milliseconds(switches.slowMilliseconds ?? 30_000))
        case .held: while state.switches.failure == .held { try await Task.sleep(for: .milliseconds(5)) }
        }
        return try await next(request, context)
    }
}

import Hummingbird

/// The state of a stand-in of a back end, as far as all have it.
protocol SandboxSystem: Sendable {
    associatedtype Behaviour: Switches

    /// Lends the dials, under the lock of the whole state.
    func withDials<Value: Sendable>(_ use: (inout SandboxDials<Behaviour>) throws -> Value) rethrows -> Value

    var recordCount: Int { get }
}

extension SandboxSystem {
    var switches: Behaviour { withDials { $0.switches } }

    func count(_ kind: String, _ count: Int = 1) { withDials { $0.count(kind, count) } }

    /// Takes as long as a call takes. What is returned answers it: it failed before it was looked at.
    func failure(
        of request: Request, unavailable: @autoclosure () -> Response, tooManyRequests: @autoclosure () -> Response
    ) async throws -> Response? {
        let fault = withDials { $0.drawCall(isRead: request.method == .get) }
        if fault.milliseconds > 0 { try await Task.sleep(for: .milliseconds(fault.milliseconds)) }
        switch fault.kind {
        case .none: return nil
        case .unavailable:
            count("answered503")
            return unavailable()
        case .tooManyRequests:
            count("answered429")
            var response = tooManyRequests()
            response.headers[.retryAfter] = String(switches.faults.retryAfterSeconds)
            return response
        }
    }

    /// Answers what every stand-in can be asked below `/sandbox/`; nil for anything else.
    func control(_ request: Request) async throws -> Response? {
        switch (request.method, request.uri.path) {
        case (.get, "/sandbox/switches"): return try SandboxControl.encoded(switches)
        case (.post, "/sandbox/switches"):
            return try await SandboxControl.change(request) { (patch: SwitchesPatch<Behaviour>) in
                try SandboxControl.encoded(withDials { try $0.patch(patch) })
            }
        case (.get, "/sandbox/stats"):
            let waiting = withDials { $0.lateCommitsWaiting }
            return try SandboxControl.encoded(
                withDials { $0.counts }.merging(["records": recordCount, "lateCommitsWaiting": waiting]) { $1 })
        default: return nil
        }
    }
}

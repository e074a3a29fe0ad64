import FoundationEssentials
import Hummingbird

/// The state of an emulator of a back end.
protocol SandboxSystem: Sendable {
    associatedtype Own: EmulatorSwitches

    /// Gives access to the dials under the lock of the state.
    func withDials<Value: Sendable>(_ use: (inout SandboxDials<Own>) throws -> Value) rethrows -> Value

    var recordCount: Int { get }
}

extension SandboxSystem {
    var switches: Switches<Own> { withDials { $0.switches } }

    func count(_ kind: String, _ count: Int = 1) { withDials { $0.count(kind, count) } }

    /// Waits for the latency of a call, and returns the response of an injected fault.
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

    /// Executes the control requests of all emulators; returns `nil` for others.
    func control(_ request: Request) async throws -> Response? {
        switch (request.method, request.uri.path) {
        case (.get, "/sandbox/switches"): return try SandboxControl.encoded(switches)
        case (.post, "/sandbox/switches"):
            return try await SandboxControl.change(request) { (json: Data) in
                try SandboxControl.encoded(withDials { try $0.change(by: json) })
            }
        case (.get, "/sandbox/stats"):
            let waiting = withDials { $0.lateCommitsWaiting }
            return try SandboxControl.encoded(
                withDials { $0.counts }.merging(["records": recordCount, "lateCommitsWaiting": waiting]) { $1 })
        default: return nil
        }
    }
}

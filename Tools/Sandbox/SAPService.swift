import FoundationEssentials
import Synchronization

/// A stand-in for SAP S/4HANA: time sheet, projects and business partners, written from the documented behaviour.
struct SAPService: Sendable {
    struct Configuration: Sendable {
        var host = "127.0.0.1"
        /// 0 takes a free one.
        var port = 0
        var user = "FIELDPOST"
        var password = "sandbox"
        /// Where what was acknowledged survives a restart; nil keeps it in memory only.
        var statePath: String?
    }

    let system: SAPSystem
    private let configuration: Configuration

    init(_ configuration: Configuration) throws {
        self.configuration = configuration
        system = try SAPSystem(journalPath: configuration.statePath)
    }

    /// Serves until the task is cancelled or the process is told to stop.
    ///
    /// - Parameter onRunning: Called with the port once requests are answered.
    func run(onRunning: @escaping @Sendable (Int) async -> Void = { _ in }) async throws {
        let responder = SAPResponder(
            system: system, sessions: SAPSessions(),
            credentials: "Basic " + Data("\(configuration.user):\(configuration.password)".utf8).base64EncodedString())
        try await SandboxServer(responder: responder, host: configuration.host, port: configuration.port)
            .run(onRunning: onRunning)
    }
}

/// CSRF tokens, each bound to the session whose cookie came with it. A restart forgets them, as SAP's does.
final class SAPSessions: Sendable {
    static let cookie = "SAP_SESSIONID_S4H_100"
    private static let countMax = 10_000

    private struct State {
        var tokens: [String: String] = [:]
        var oldest: [String] = []
    }

    private let state = Mutex(State())

    func start() -> (session: String, token: String) {
        let (session, token) = (UUID().uuidString, UUID().uuidString)
        state.withLock { state in
            state.tokens[session] = token
            state.oldest.append(session)
            if state.oldest.count > SAPSessions.countMax {
                for session in state.oldest.prefix(SAPSessions.countMax / 2) { state.tokens[session] = nil }
                state.oldest.removeFirst(SAPSessions.countMax / 2)
            }
        }
        return (session, token)
    }

    func token(of session: String) -> String? { state.withLock { $0.tokens[session] } }

    /// Ends all sessions, as a restart or a time-out would.
    func endAll() {
        state.withLock { $0 = State() }
    }
}

import FoundationEssentials
import Synchronization

/// An emulator of SAP S/4HANA: time sheets, projects and business partners, after the documented behaviour.
struct SAPService: EmulatorService {
    typealias Configuration = EmulatorConfiguration

    let address: Configuration
    let system: SAPSystem
    let responder: SAPResponder

    init(_ address: Configuration, user: String = "FIELDPOST", password: String = "sandbox") throws {
        self.address = address
        system = try SAPSystem(journalPath: address.statePath)
        responder = SAPResponder(
            system: system, sessions: SAPSessions(),
            credentials: "Basic " + Data("\(user):\(password)".utf8).base64EncodedString())
    }
}

/// CSRF tokens, each bound to the session of its cookie. They are lost with a restart, as SAP's are.
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

    /// Ends all sessions, as a restart or a timeout does.
    func endAll() {
        state.withLock { $0 = State() }
    }
}

import Foundation
import PowerSync

/// The login of one person. Store it in the keychain: `credential` is a password.
struct FieldpostLogin: Codable, Sendable {
    var onboarding: URL
    var gateway: URL
    var accessToken: String
    var expiresAt: Date
    /// Renews the token; `nil` if the person has to log in when it ends.
    var credential: String?
}

/// Stores the login. `save` returns when it is stored.
protocol LoginStore: Sendable {
    func load() async throws -> FieldpostLogin?
    func save(_ login: FieldpostLogin?) async throws
}

/// The login through onboarding.
extension FieldpostConnector {
    /// Logs a person in. Returns when the token is stored and the person's data is ready.
    ///
    /// `onProblem` gets a URL if another attempt in the same session may succeed.
    func login(
        _ email: String, open: @Sendable (URL) async -> Void,
        onProblem: @Sendable (ConnectorError, URL?) async -> Void = { _, _ in }
    ) async throws {
        struct Session: Decodable { var login_url: URL, session_id: String, expires_in: Double }
        struct Event: Decodable { var id: Int64, event: String }
        var login = FieldpostLogin(onboarding: onboarding, gateway: gateway, accessToken: "", expiresAt: .distantPast)
        let body = try Self.json(["email": email])
        let data = try await send("POST", onboarding, "register_device", body: body) { login.onboarding = $0 }
        let registered = try JSONDecoder().decode(Session.self, from: data)
        let deadline = Date() + registered.expires_in
        var address = URLComponents(url: login.onboarding, resolvingAgainstBaseURL: false)!
        address.scheme = address.scheme == "http" ? "ws" : "wss"
        let url = address.url!.appendingPathComponent("sessions/\(registered.session_id)")
        var missing: Set = ["token", "data ready"], handled: Set<Int64> = [], isOffered = false, failures = 0.0
        while !missing.isEmpty {
            guard Date() < deadline else {
                throw ConnectorError(code: "session-expired", message: "The login took too long.")
            }
            if failures > 0 { try await Task.sleep(nanoseconds: UInt64(min(pow(2, failures) / 2, 10) * 1e9)) }
            failures += 1
            let socket = session.webSocketTask(with: url)
            socket.resume()
            defer { socket.cancel(with: .normalClosure, reason: nil) }
            if !isOffered { await open(registered.login_url) }
            isOffered = true
            // The socket reports its end as an error. Unacknowledged events are delivered again.
            while !missing.isEmpty, let message = try? await socket.receive() {
                guard case .string(let text) = message else { continue }
                let event = try JSONDecoder().decode(Event.self, from: Data(text.utf8))
                let members = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
                let payload = members?["payload"] as? [String: Any] ?? [:]
                if handled.insert(event.id).inserted && event.event == "token" {
                    try Self.setToken(of: JSONSerialization.data(withJSONObject: payload), in: &login)
                    try await store.save(login)
                } else if event.event == "error" {
                    let error = ConnectorError(
                        code: payload["code"] as? String ?? "", message: payload["message"] as? String ?? "")
                    let next = (payload["login_url"] as? String).flatMap(URL.init(string:))
                    await onProblem(error, next)
                    if next == nil { throw error }
                }
                missing.remove(event.event)
                failures = 0
                try? await socket.send(.string("{\"acknowledge\":\(event.id)}"))
            }
            if socket.closeCode.rawValue >= 4000 {
                throw ConnectorError(code: "session-closed", message: "Close code \(socket.closeCode.rawValue).")
            }
        }
    }

    /// Ends the login and clears the database. Throws `queued-entries` unless `discard` is true.
    func signOut(_ database: any PowerSyncDatabaseProtocol, discard: Bool = false) async throws {
        let count = try await database.get(Statement.count) { try $0.getInt64(index: 0) }
        if count > 0 && !discard {
            throw ConnectorError(code: "queued-entries", message: "\(count) changes were not uploaded yet.")
        }
        try await database.disconnectAndClear()
        _ = try? await renewal?.value
        let login = try await store.load()
        try await store.save(nil)
        alignedClient = nil
        guard let login, login.credential != nil else { return }
        _ = try? await send("POST", login.onboarding, "v1/logout", body: Self.json(["credential": login.credential]))
    }

    /// Reads the token of an event or of a renewal.
    static func setToken(of data: Data, in login: inout FieldpostLogin) throws {
        struct Token: Decodable { var access_token: String, expires_at: String, credential: String? }
        let token = try JSONDecoder().decode(Token.self, from: data)
        let format = Date.ISO8601FormatStyle(includingFractionalSeconds: token.expires_at.contains("."))
        login.accessToken = token.access_token
        login.expiresAt = try format.parse(token.expires_at)
        login.credential = token.credential
    }
}

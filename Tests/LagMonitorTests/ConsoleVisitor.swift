import Essentials
import Foundation
import HTTPClient
import Testing

/// A minimal browser: it stores cookies, follows redirects and submits forms.
final class ConsoleVisitor {
    private static let retryCountMax = 20

    private let fixture: ConsoleFixture
    private(set) var cookies: [String: String] = [:]
    /// All received `Set-Cookie` headers.
    private(set) var setCookies: [String] = []
    var token = ""
    /// Headers of every request.
    var headers: [(String, String)] = []

    init(_ fixture: ConsoleFixture) { self.fixture = fixture }

    /// Sets a forged session cookie.
    func forge(_ id: String) { cookies["fieldpost-console"] = id }

    /// Sends a request without following redirects.
    func send(
        _ method: String, _ path: String, headers: [(String, String)] = [], body: String? = nil
    ) async throws -> Response {
        var request = Request(method, path.hasPrefix("http") ? path : fixture.url + path)
        request.headers = (self.headers + headers).map { (name: $0.0, value: $0.1) }
        if !cookies.isEmpty {
            let pairs = cookies.map { "\($0.key)=\($0.value)" }.joined(separator: "; ")
            request.headers.append((name: "Cookie", value: pairs))
        }
        request.body = body.map { Array($0.utf8) }
        let response = try await fixture.client.send(request)
        for (name, cookie) in response.headers where name.lowercased() == "set-cookie" {
            setCookies.append(cookie)
            let pair = cookie.split(separator: ";")[0].split(separator: "=", maxSplits: 1)
            cookies[String(pair[0])] = pair.count > 1 ? String(pair[1]) : nil
        }
        return response
    }

    /// Sends an action like the page.
    func act(_ path: String, _ body: String, origin: String? = nil, token: String? = nil) async throws -> Int {
        try await send(
            "POST", path,
            headers: [
                ("Content-Type", "application/json"), ("Origin", origin ?? fixture.url),
                ("fieldpost-console-token", token ?? self.token),
            ], body: body
        ).status
    }

    /// Logs in at the provider and returns the callback URL.
    func logIn(as email: String) async throws -> String {
        var response = try await send("GET", "/sign-in")
        // The provider may time out on a busy machine.
        for _ in 0..<Self.retryCountMax where response.status == 503 { response = try await send("GET", "/sign-in") }
        let address = try #require(response.headers["Location"], "\(response.status)")
        let login = try await send("GET", address)
        let consent = try await submit(login, at: address, [("email", email), ("password", ConsoleFixture.password)])
        let result = try await submit(consent, at: address, [("decision", "allow")])
        return try #require(result.headers["Location"])
    }

    /// Signs in and stores the session's token.
    func signIn(as email: String = ConsoleFixture.administrator) async throws -> Response {
        let response = try await send("GET", try await logIn(as: email))
        struct Session: Decodable { let token: String }
        let session = try await send("GET", "/api/session")
        if session.status == 200 { token = try JSONDecoder().decode(Session.self, from: Data(session.body)).token }
        return response
    }

    private func submit(
        _ page: Response, at address: String, _ values: [(String, String)]
    ) async throws -> Response {
        let text = String(decoding: page.body, as: UTF8.self)
        func between(_ start: String, _ end: String) throws -> String {
            let from = try #require(text.range(of: start), "\(text)")
            let to = try #require(text.range(of: end, range: from.upperBound..<text.endIndex))
            return String(text[from.upperBound..<to.lowerBound])
        }
        let target = try #require(URL(string: try between("action=\"", "\""), relativeTo: URL(string: address)))
        var fields = FormFields()
        fields.add("transaction", try between("name=\"transaction\" value=\"", "\""))
        for (name, value) in values { fields.add(name, value) }
        return try await send(
            "POST", target.absoluteString, headers: [("Content-Type", "application/x-www-form-urlencoded")],
            body: fields.encoded)
    }
}

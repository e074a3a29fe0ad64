import Essentials
import Foundation
import HTTPClient
import Testing

/// A browser as far as sign-ins need one: it keeps cookies, follows redirects, and sends forms.
final class ConsoleVisitor {
    private static let retryCountMax = 20

    private let fixture: ConsoleFixture
    private(set) var cookies: [String: String] = [:]
    /// As they were set, with their attributes.
    private(set) var setCookies: [String] = []
    var token = ""
    /// Sent with each request.
    var headers: [(String, String)] = []

    init(_ fixture: ConsoleFixture) { self.fixture = fixture }

    /// Holds a session's cookie that it was given by nobody.
    func forge(_ id: String) { cookies["fieldpost-console"] = id }

    /// One request, without following where it leads.
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
        for cookie in response.headers.values(of: "Set-Cookie") {
            setCookies.append(cookie)
            let pair = cookie.split(separator: ";")[0].split(separator: "=", maxSplits: 1)
            cookies[String(pair[0])] = pair.count > 1 ? String(pair[1]) : nil
        }
        return response
    }

    /// An act as the page sends it.
    func act(_ path: String, _ body: String, origin: String? = nil, token: String? = nil) async throws -> Int {
        try await send(
            "POST", path,
            headers: [
                ("Content-Type", "application/json"), ("Origin", origin ?? fixture.url),
                ("fieldpost-console-token", token ?? self.token),
            ], body: body
        ).status
    }

    /// Logs in at the provider, up to the address to which it sends the browser back.
    func logIn(as email: String) async throws -> String {
        var begun = try await send("GET", "/sign-in")
        // On a busy machine the provider may not answer in time; a person tries again.
        for _ in 0..<Self.retryCountMax where begun.status == 503 { begun = try await send("GET", "/sign-in") }
        let address = try #require(begun.headers["Location"], "\(begun.status)")
        let login = try await send("GET", address)
        let consent = try await submit(login, at: address, [("email", email), ("password", ConsoleFixture.password)])
        let end = try await submit(consent, at: address, [("decision", "allow")])
        return try #require(end.headers["Location"])
    }

    /// Signs in, and learns the session's token.
    func signIn(as email: String = ConsoleFixture.administrator) async throws -> Response {
        let answer = try await send("GET", try await logIn(as: email))
        struct Session: Decodable { let token: String }
        let session = try await send("GET", "/api/session")
        if session.status == 200 { token = try JSONDecoder().decode(Session.self, from: Data(session.body)).token }
        return answer
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

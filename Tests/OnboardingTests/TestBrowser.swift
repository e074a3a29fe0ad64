import Essentials
import Foundation
import HTTPClient
import Model
import Testing

/// A minimal browser: it opens pages, follows redirects and submits forms.
struct TestBrowser: Sendable {
    let fixture: OnboardingFixture
    /// The client's network address, as forwarded by a proxy.
    var address = "192.0.2.1"
    var password = "right"
    /// The instance that receives the callback.
    var instance = 0

    /// A response page.
    struct Page: Sendable {
        let url: String
        let status: Int
        let headers: Headers
        let body: String

        var title: String { between("<title>", "</title>") ?? "" }
        /// The code of the problem on the page.
        var problem: String? { between("data-code=\"", "\"") }
        var retry: String? {
            between("id=\"retry\" href=\"", "\"")?.replacingOccurrences(of: "&amp;", with: "&")
        }

        func between(_ start: String, _ end: String) -> String? {
            guard let from = body.range(of: start),
                let to = body.range(of: end, range: from.upperBound..<body.endIndex)
            else { return nil }
            return String(body[from.upperBound..<to.lowerBound])
        }

        func field(_ name: String) -> String? { between("name=\"\(name)\" value=\"", "\"") }
    }

    /// Opens a page and follows redirects, except the one to onboarding if `stopsBeforeCallback`.
    func open(_ url: String, stopsBeforeCallback: Bool = false) async throws -> Page {
        try await follow(request("GET", url), stopsBeforeCallback: stopsBeforeCallback)
    }

    /// Logs in at the provider and decides on access; returns the final page.
    func logIn(
        at url: String, as email: String = OnboardingFixture.known, decision: String = "allow",
        stopsBeforeCallback: Bool = false
    ) async throws -> Page {
        let login = try await open(url)
        #expect(login.title == "Sign in", "\(login.body)")
        let consent = try await submit(login, ["email": email, "password": password])
        guard consent.field("transaction") != nil, consent.title == "Allow access?" else { return consent }
        return try await submit(consent, ["decision": decision], stopsBeforeCallback: stopsBeforeCallback)
    }

    /// Submits a page's form.
    func submit(
        _ page: Page, _ values: [String: String], stopsBeforeCallback: Bool = false
    ) async throws -> Page {
        let action = try #require(page.between("action=\"", "\""))
        var fields = FormFields()
        for name in ["transaction", "confirm"] { if let value = page.field(name) { fields.add(name, value) } }
        for (name, value) in values { fields.add(name, value) }
        let target = try #require(URL(string: action, relativeTo: URL(string: page.url)))
        var post = request("POST", target.absoluteString)
        post.headers.append(("Content-Type", "application/x-www-form-urlencoded"))
        post.body = Array(fields.encoded.utf8)
        return try await follow(post, stopsBeforeCallback: stopsBeforeCallback)
    }

    private func follow(_ first: Request, stopsBeforeCallback: Bool) async throws -> Page {
        var request = first
        for _ in 0..<10 {
            let response = try await fixture.client.send(request)
            guard (300..<400).contains(response.status), let location = response.headers["Location"] else {
                return Page(
                    url: request.url, status: response.status, headers: response.headers,
                    body: String(decoding: response.body, as: UTF8.self))
            }
            if stopsBeforeCallback, location.contains("/auth_callback") {
                return Page(url: location, status: response.status, headers: response.headers, body: "")
            }
            request = self.request("GET", location)
        }
        throw CancellationError()
    }

    private func request(_ method: String, _ url: String) -> Request {
        let moved = url.replacingOccurrences(
            of: ":\(fixture.ports[0])/auth_callback", with: ":\(fixture.ports[instance])/auth_callback")
        return Request(method, moved, headers: [("X-Forwarded-For", address)])
    }
}

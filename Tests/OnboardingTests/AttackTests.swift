import Essentials
import Foundation
import Glibc
import HTTPClient
import Logging
import Model
import NIOCore
import Postgres
import Secrets
import TestSupport
import Testing

@testable import HTTPServer
@testable import Onboarding
@testable import Sandbox
@testable import ServiceRuntime
@testable import ServiceSettings
@testable import Telemetry

/// Attacks on the login and on the requests around it.
@Suite(.ownThreads) struct AttackTests {
    // MARK: Sessions

    @Test func clientCannotChooseItsSessionID() async throws {
        try await withOnboarding { fixture in
            let chosen = Capability().text
            let response = try await fixture.client.send(
                Request(
                    "POST", fixture.url("/register_device?session_id=\(chosen)"),
                    headers: [("Content-Type", "application/json"), ("Cookie", "session_id=\(chosen)")],
                    body: Array(#"{"email":"ana@example.com","session_id":"\#(chosen)"}"#.utf8)))
            #expect(response.status == 200)
            #expect(!String(decoding: response.body, as: UTF8.self).contains(chosen))
            let socket = try await TestSocket(port: fixture.ports[0], path: "/sessions/\(chosen)")
            #expect(await socket.status == 404)
        }
    }

    @Test func sessionGuessesAreRateLimited() async throws {
        var limits = OnboardingLimits.quick
        limits.clientCountMax = 20
        try await withOnboarding(limits: limits) { fixture in
            let device = try await TestDevice(fixture)
            // Ids are entirely random.
            let ids = (0..<1_000).map { _ in Capability().text }
            #expect(Set(ids).count == 1_000)
            #expect(Set(ids.map { $0.prefix(3) }).count > 900)
            var statuses: [Int] = []
            let near = String(device.session.dropLast()) + (device.session.hasSuffix("A") ? "E" : "A")
            for id in [near, near.lowercased(), "..", "%00", ""] + ids.prefix(30) {
                let socket = try await TestSocket(
                    port: fixture.ports[0], path: "/sessions/\(id)", headers: "X-Forwarded-For: 203.0.113.9\r\n")
                statuses.append(await socket.status)
                await socket.disconnect()
            }
            #expect(!statuses.contains(101))
            let refused = try await TestSocket(port: fixture.ports[0], path: "/sessions/\(Capability().text)")
            for field in ["x-content-type-options: nosniff", "cache-control: no-store", "default-src 'none'"] {
                #expect(await refused.head.lowercased().contains(field), "\(field)")
            }
            #expect(statuses.contains(404) && statuses.last == 429, "\(statuses)")
            // A device behind the same network address is not locked out by those guesses.
            let right = try await TestSocket(
                port: fixture.ports[0], path: "/sessions/\(device.session)",
                headers: "X-Forwarded-For: 203.0.113.9\r\n")
            #expect(await right.status == 101)
            #expect(await (try device.connect()).status == 101)
        }
    }

    /// An attacker starts a session for Ana's address and sends Ana the login URL.
    @Test func deviceAtAnotherAddressRequiresConfirmation() async throws {
        try await withOnboarding { fixture in
            let attacker = try await TestDevice(fixture, address: "203.0.113.9")
            let socket = try await TestSocket(port: fixture.ports[0], path: "/sessions/\(attacker.session)")
            let ana = TestBrowser(fixture: fixture, address: "192.0.2.1")
            let page = try await ana.logIn(at: attacker.loginURL)
            #expect(page.title == "Confirm your device" && page.body.contains("203.0.113.9"), "\(page.body)")
            #expect(page.body.contains("Test phone"))
            #expect(await socket.events.isEmpty)
            let outcome = try await ana.submit(page, ["decision": "no"])
            #expect(outcome.problem == "not-confirmed" && outcome.retry == nil)
            #expect(try await socket.event("error").payload["code"] == "not-confirmed")
            // The decision is final.
            #expect(try await ana.submit(page, ["decision": "yes"]).status == 400)
            #expect(await socket.events.map(\.name) == ["error"])
        }
    }

    @Test func confirmationCompletesLogin() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture, address: "203.0.113.9")
            let socket = try await device.connect()
            let browser = TestBrowser(fixture: fixture, address: "192.0.2.1")
            let page = try await browser.logIn(at: device.loginURL)
            for decision in ["", "maybe", "yes"] where decision != "yes" {
                _ = try await browser.open(fixture.url("/auth_confirm?decision=\(decision)"))
            }
            let outcome = try await browser.submit(page, ["decision": "yes"])
            #expect(outcome.status == 200 && outcome.title == "You are logged in", "\(outcome.body)")
            try await socket.event("token")
        }
    }

    /// The key that sealed the PKCE verifier was removed meanwhile.
    @Test func confirmationDoesNotReadVerifier() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture, address: "203.0.113.9")
            let socket = try await device.connect()
            let browser = TestBrowser(fixture: fixture, address: "192.0.2.1")
            let page = try await browser.logIn(at: device.loginURL)
            try fixture.withDatabase { connection in
                let removed = try SecretBox([Data(repeating: 1, count: 32).base64EncodedString()])
                let sealed = Bytea(try removed.seal("verifier", at: "login/x/verifier"))
                #expect(try connection.run("UPDATE onboarding.login SET verifier = \(sealed)").affectedCount == 1)
            }
            #expect(try await browser.submit(page, ["decision": "yes"]).status == 200)
            try await socket.event("token")
        }
    }

    // MARK: Codes

    /// The code of one login in the session of another.
    @Test func codeOfAnotherLoginIsRejected() async throws {
        try await withOnboarding { fixture in
            let browser = TestBrowser(fixture: fixture)
            let (ana, eve) = (try await TestDevice(fixture), try await TestDevice(fixture))
            let sockets = [try await ana.connect(), try await eve.connect()]
            let first = try await browser.logIn(at: ana.loginURL, stopsBeforeCallback: true)
            let second = try await browser.logIn(at: eve.loginURL, stopsBeforeCallback: true)
            let fields = [first, second].map { FormFields(URL(string: $0.url)?.query ?? "") ?? FormFields() }
            var injected = FormFields()
            injected.add("code", fields[0]["code"] ?? "")
            injected.add("state", fields[1]["state"] ?? "")
            injected.add("iss", fixture.issuer)
            let page = try await browser.open(fixture.url("/auth_callback?\(injected.encoded)"))
            // PKCE: the provider rejects the other login's verifier.
            #expect(page.problem == "provider-error", "\(page.body)")
            #expect(try await sockets[1].event("error").payload["code"] == "provider-error")
            #expect(await sockets[0].events.isEmpty)
        }
    }

    @Test func responseOfAnotherIssuerIsRejected() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let browser = TestBrowser(fixture: fixture)
            let back = try await browser.logIn(at: device.loginURL, stopsBeforeCallback: true)
            let mixed = back.url.replacingOccurrences(of: "iss=http", with: "iss=https")
            #expect(try await browser.open(mixed).problem == "token-refused")
        }
    }

    /// The provider declares that its responses carry `iss` (RFC 9207 §2.4).
    @Test(arguments: ["", "&iss=http%3A%2F%2Fevil.example"]) func responseWithoutSingleIssuerIsRejected(more: String)
        async throws
    {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let browser = TestBrowser(fixture: fixture)
            let back = try await browser.logIn(at: device.loginURL, stopsBeforeCallback: true)
            let other = more.isEmpty ? back.url.replacingOccurrences(of: "iss=", with: "isn=") : back.url + more
            #expect(try await browser.open(other).problem == "token-refused")
        }
    }

    // MARK: Addresses, headers, pages

    @Test func redirectsToForeignAddressesAreIgnored() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let response = try await fixture.client.send(
                Request(
                    "POST", fixture.url("/register_device"),
                    headers: [
                        ("Content-Type", "application/json"), ("X-Forwarded-Host", "evil.example"),
                        ("X-Forwarded-Proto", "https"), ("Forwarded", "host=evil.example"),
                    ], body: Array(#"{"email":"ana@example.com","redirect_uri":"https://evil.example"}"#.utf8)))
            #expect(!String(decoding: response.body, as: UTF8.self).contains("evil"))
            let state = FormFields(URL(string: device.loginURL)?.query ?? "")?["state"] ?? ""
            for query in [
                "redirect_uri=https://evil.example", "next=//evil.example", "return_to=https://evil.example",
                "state=\(state)&error=access_denied&error_uri=https://evil.example&redirect_uri=https://evil.example",
            ] {
                let page = try await TestBrowser(fixture: fixture).open(fixture.url("/auth_callback?\(query)"))
                #expect(page.headers["Location"] == nil && !page.body.contains("evil"), "\(page.body)")
            }
            // The sandbox's provider rejects redirect URLs that are not registered.
            let elsewhere = device.loginURL.replacingOccurrences(
                of: "redirect_uri=http%3A%2F%2F127.0.0.1", with: "redirect_uri=http%3A%2F%2Fevil.example")
            let refused = try await TestBrowser(fixture: fixture).open(elsewhere)
            #expect(refused.status == 400 && refused.headers["Location"] == nil)
        }
    }

    @Test func externalInputIsNotReflectedInHeadersOrPages() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            let state = FormFields(URL(string: device.loginURL)?.query ?? "")?["state"] ?? ""
            var fields = FormFields()
            fields.add("state", state)
            fields.add("iss", fixture.issuer)
            fields.add("error", "<script>alert(1)</script>\r\nSet-Cookie: a=b")
            fields.add("error_description", "\r\n\r\n<h1>evil</h1>")
            let page = try await TestBrowser(fixture: fixture).open(fixture.url("/auth_callback?\(fields.encoded)"))
            #expect(page.problem == "provider-error")
            #expect(!page.body.contains("script") && !page.body.contains("evil"))
            #expect(page.headers["Set-Cookie"] == nil)
            #expect(page.headers["Content-Security-Policy"]?.hasPrefix("default-src 'none'") == true)
            #expect(page.headers["Cache-Control"] == "no-store" && page.headers["Referrer-Policy"] == "no-referrer")
            let event = try await socket.event("error")
            #expect(event.payload.values.allSatisfy { !$0.contains("script") && !$0.contains("evil") })
        }
    }

    @Test func deviceNameIsEscaped() async throws {
        var limits = OnboardingLimits.quick
        limits.confirm = .always
        try await withOnboarding(limits: limits) { fixture in
            let response = try await fixture.client.send(
                Request(
                    "POST", fixture.url("/register_device"),
                    headers: [
                        ("Content-Type", "application/json"), ("User-Agent", "<script>alert(\"1\")</script>"),
                        ("X-Forwarded-For", "<b>\"', 192.0.2.1"),
                    ], body: Array(#"{"email":"ana@example.com"}"#.utf8)))
            let json = try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
            let page = try await TestBrowser(fixture: fixture).logIn(
                at: try #require(json["login_url"] as? String))
            #expect(page.body.contains("&lt;script&gt;alert(&quot;1&quot;)") && !page.body.contains("<script"))
        }
    }

    /// Input from a provider or a browser cannot forge a log line.
    @Test func logEntriesAreSingleLines() async throws {
        let folder = FileManager.default.temporaryDirectory.appendingPathComponent("fieldpost-log-\(UUID())").path
        let descriptor = unsafe open(folder, O_CREAT | O_RDWR | O_EXCL, 0o600)
        try #require(descriptor >= 0)
        defer {
            close(descriptor)
            try? FileManager.default.removeItem(atPath: folder)
        }
        let logger = Logger(label: "onboarding") {
            LineLogHandler(label: $0, service: "onboarding", level: .info, format: .text, descriptor: descriptor)
        }
        try await withOnboarding(logger: logger) { fixture in
            let forged = "x\r\n2026-01-01T00:00:00Z critical onboarding everything is lost\u{1b}[2J"
            for parameter in ["error", "iss"] {
                let device = try await TestDevice(fixture)
                var fields = FormFields()
                fields.add("state", FormFields(URL(string: device.loginURL)?.query ?? "")?["state"] ?? "")
                fields.add(parameter, forged)
                if parameter == "error" { fields.add("iss", fixture.issuer) }
                _ = try await TestBrowser(fixture: fixture).open(fixture.url("/auth_callback?\(fields.encoded)"))
            }
        }
        let text = try String(contentsOfFile: folder, encoding: .utf8)
        let lines = text.split(separator: "\n")
        #expect(lines.filter { $0.contains("login failed") }.count == 2, "\(text)")
        #expect(lines.allSatisfy { !$0.hasPrefix("2026-01-01") && !$0.contains("\u{1b}") && !$0.contains("\r") })
        // Neither a session, nor a state, nor a token is ever logged.
        #expect(!text.contains("state=") && !text.contains("eyJ"))
    }

    /// Otherwise device and browser would both have the proxy's address.
    @Test func httpsURLRequiresProxyCount() throws {
        var limits = OnboardingLimits()
        #expect(throws: ConfigurationError.self) {
            try limits.check(url: "https://on.example.com", edge: HTTPEdge(), proxyCount: 0)
        }
        try limits.check(url: "https://on.example.com", edge: HTTPEdge(), proxyCount: 1)
        try limits.check(url: "http://127.0.0.1:1", edge: HTTPEdge(), proxyCount: 0)
        let tls = HTTPEdge(tls: .init(certificate: "a", key: "b"))
        try limits.check(url: "https://on.example.com", edge: tls, proxyCount: 0)
        limits.confirm = .always
        try limits.check(url: "https://on.example.com", edge: HTTPEdge(), proxyCount: 0)
    }

    // MARK: Sizes and timeouts

    @Test func oversizedRequestsAreRejected() async throws {
        try await withOnboarding { fixture in
            let large = #"{"email":"\#(String(repeating: "a", count: 5_000))@example.com"}"#
            let response = try await fixture.client.send(
                Request(
                    "POST", fixture.url("/register_device"), headers: [("Content-Type", "application/json")],
                    body: Array(large.utf8)))
            #expect(response.status == 413)
            // Also without `Content-Length`.
            let chunked = try await TestSocket(
                port: fixture.ports[0], path: "",
                handshake: "POST /register_device HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    + "Transfer-Encoding: chunked\r\n\r\n"
                    + String(repeating: "400\r\n\(String(repeating: "a", count: 1_024))\r\n", count: 6) + "0\r\n\r\n")
            #expect(await chunked.status == 413)
            let head = try await TestSocket(
                port: fixture.ports[0], path: "/sessions/x",
                headers: "X-Long: \(String(repeating: "a", count: 20_000))\r\n")
            #expect([0, 400, 431].contains(await head.status))
            let many = try await TestSocket(
                port: fixture.ports[0], path: "/sessions/x", headers: String(repeating: "X-Y: z\r\n", count: 200))
            #expect([0, 400, 431].contains(await many.status))
        }
    }

    @Test func slowClientsAreDisconnected() async throws {
        var limits = OnboardingLimits.quick
        // Far above the time of the last response: a client that sends slowly and reads too late loses it.
        limits.requestMax = .seconds(12)
        try await withOnboarding(limits: limits) { fixture in
            // A head that never ends, one that ends slowly, and a body that drips.
            async let silent = TestSocket(port: fixture.ports[0], path: "", handshake: "GET / HTTP/1.1\r\n")
            async let head = slowly(fixture, "", "GET /sessions/x HTTP/1.1\r\nHost: x\r\nX-Long: ")
            async let body = slowly(
                fixture,
                "POST /register_device HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
                    + "Content-Length: 4000\r\n\r\n", "")
            // A body that the server does not read after its response.
            async let unread = slowly(fixture, "POST /nope HTTP/1.1\r\nHost: x\r\nContent-Length: 4000\r\n\r\n", "")
            let (silentSocket, headSocket) = (try await silent, try await head)
            let (bodySocket, unreadSocket) = (try await body, try await unread)
            #expect(await silentSocket.isEnded)
            #expect(await headSocket.status == 0)
            #expect(await bodySocket.status == 0)
            #expect(await unreadSocket.status == 404)
        }
    }

    private func slowly(_ fixture: OnboardingFixture, _ head: String, _ rest: String) async throws -> TestSocket {
        let socket = try await TestSocket(port: fixture.ports[0], path: "", handshake: head + rest, waits: false)
        for _ in 0..<6_000 {
            try? await Task.sleep(for: .milliseconds(20))
            if await socket.isEnded { break }
            try? await socket.raw([UInt8(ascii: "a")])
        }
        #expect(await socket.isEnded, "the server did not close the connection")
        return socket
    }
}

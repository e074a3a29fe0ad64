import Foundation
import HTTPClient
import Postgres
import ProjectDocuments
import TestSupport
import Testing
import Yams

@testable import HTTPServer
@testable import Onboarding
@testable import Sandbox
@testable import ServiceRuntime

/// `deploy/openapi.yaml` says what onboarding answers.
@Suite(.ownThreads) struct ContractTests {
    private static func document() throws -> ProjectDocument { try ProjectDocument("deploy/openapi.yaml") }

    /// Path → status codes, as the document lists them.
    private static func statuses() throws -> [String: Set<Int>] {
        var statuses: [String: Set<Int>] = [:]
        for (path, route) in try document().root["paths"]?.members ?? [] {
            let listed = route.members.flatMap { $0.value["responses"]?.names ?? [] }
            statuses[path] = Set(listed.compactMap { Int($0) })
        }
        return statuses
    }

    @Test func everyAnswerIsInTheDocument() async throws {
        let statuses = try Self.statuses()
        let json = [("Content-Type", "application/json")]
        let form = [("Content-Type", "application/x-www-form-urlencoded")]
        let requests: [(String, String, [(String, String)], String, Int)] = [
            ("POST", "/register_device", json, #"{"email":"ana@example.com"}"#, 200),
            ("POST", "/register_device", json, #"{"email":"ana"}"#, 400), ("POST", "/register_device", json, "", 400),
            ("POST", "/register_device", json, #"{"email":"a@b.example"}"#, 404),
            ("POST", "/register_device", [], #"{"email":"ana@example.com"}"#, 415),
            ("POST", "/register_device", json, String(repeating: " ", count: 5_000), 413),
            ("GET", "/sessions/{session_id}", [], "", 404), ("GET", "/auth_callback", [], "", 400),
            ("GET", "/auth_callback?state=x", [], "", 400), ("POST", "/auth_confirm", form, "confirm=x", 400),
            ("POST", "/auth_confirm", form, String(repeating: "a", count: 5_000), 413),
            ("POST", "/v1/token", json, "{}", 400), ("POST", "/v1/token", json, #"{"credential":"x"}"#, 401),
            ("POST", "/v1/token", [], "{}", 415),
            ("POST", "/v1/token", json, String(repeating: " ", count: 5_000), 413),
        ]
        try await withOnboarding { fixture in
            for (method, path, headers, body, expected) in requests {
                let answer = try await fixture.client.send(
                    Request(
                        method, fixture.url(path.replacingOccurrences(of: "{session_id}", with: Capability().text)),
                        headers: headers, body: method == "GET" ? nil : Array(body.utf8)))
                let name = String(path.prefix { $0 != "?" })
                #expect(answer.status == expected, "\(method) \(path) \(body.prefix(40))")
                #expect(statuses[name]?.contains(answer.status) == true, "\(name) \(answer.status)")
                let type = answer.headers["Content-Type"] ?? ""
                #expect(
                    answer.status < 300 || name.hasPrefix("/auth") && answer.status != 413
                        ? !type.contains("problem") : type == "application/problem+json", "\(name): \(type)")
            }
            // A method that a path does not have.
            for path in ["/register_device", "/auth_confirm", "/v1/token"] {
                let answer = try await fixture.client.send(Request(fixture.url(path)))
                #expect(answer.status == 405 && answer.headers["Allow"] == "POST")
            }
            let device = try await TestDevice(fixture)
            let plain = try await fixture.client.send(Request(fixture.url("/sessions/\(device.session)")))
            #expect(plain.status == 426 && statuses["/sessions/{session_id}"]?.contains(426) == true)
        }
    }

    /// What was answered, by the document's paths.
    private actor Seen {
        var statuses: [String: Set<Int>] = [:]
        func add(_ path: String, _ status: Int) { statuses[path, default: []].insert(status) }
    }

    /// Each route answers with each status that the document lists, and with no other.
    @Test func everyRouteAnswersWithEveryStatusItIsSaidTo() async throws {
        let seen = Seen()
        try await withOnboarding(settings: TestDevice.keepsTokens) { fixture in
            let credential = try await TestDevice.comesIn(fixture).credential
            await seen.add("/v1/token", try await fixture.renew(credential).status)
            try await register(fixture, seen)
            let session = try await TestDevice(fixture).session
            let plain = try await fixture.client.send(Request(fixture.url("/sessions/\(session)")))
            await seen.add("/sessions/{session_id}", plain.status)
            let browser = TestBrowser(fixture: fixture)
            func logIn(_ switches: IdentitySwitches = IdentitySwitches(), decision: String = "allow") async throws {
                let device = try await TestDevice(fixture)
                let socket = try await device.connect()
                await seen.add("/sessions/{session_id}", await socket.status)
                fixture.identity.switches = switches
                let page = try await browser.logIn(at: device.loginURL, decision: decision)
                fixture.identity.switches = IdentitySwitches()
                await seen.add("/auth_callback", page.status)
            }
            try await logIn()
            try await logIn(decision: "refuse")
            try await logIn(IdentitySwitches(clockSkewSeconds: 600))
            try await logIn(IdentitySwitches(failure: .down, failureAt: "token"))
        }
        try await withOnboarding(limits: Self.asking) { fixture in
            for decision in ["yes", "no"] {
                let device = try await TestDevice(fixture)
                let browser = TestBrowser(fixture: fixture)
                let question = try await browser.logIn(at: device.loginURL)
                await seen.add("/auth_callback", question.status)
                await seen.add("/auth_confirm", try await browser.submit(question, ["decision": decision]).status)
            }
        }
        try await withOnboarding(limits: Self.narrow) { fixture in
            for _ in 0..<3 { try await register(fixture, seen) }
        }
        try await withOnboarding { fixture in
            try await fixture.withoutDatabase { try await register(fixture, seen) }
        }
        try await withOnboarding(settings: TestDevice.keepsTokens) { fixture in
            let credential = try await TestDevice.comesIn(fixture).credential
            try fixture.withDatabase { connection in
                _ = try connection.run(
                    "INSERT INTO realm.move (environment_id, move_id, state) VALUES (1, gen_random_uuid(), 'left')")
            }
            await seen.add(
                "/register_device", try await TestDevice.register(fixture, OnboardingFixture.known).status)
            await seen.add("/v1/token", try await fixture.renew(credential).status)
        }
        var expected = try Self.statuses().filter { !$0.key.hasPrefix("/v1/") || $0.key == "/v1/token" }
        // Tokens that expire while the person is asked: it would take as long.
        expected["/auth_confirm"]?.remove(502)
        #expect(await seen.statuses == expected)
    }

    private static var asking: OnboardingLimits {
        var limits = OnboardingLimits.quick
        limits.confirm = .always
        return limits
    }

    private static var narrow: OnboardingLimits {
        var limits = OnboardingLimits.quick
        limits.clientCountMax = 1
        return limits
    }

    /// Asks every route what needs no login, in all its ways.
    private func register(_ fixture: OnboardingFixture, _ seen: Seen) async throws {
        let json = [("Content-Type", "application/json")]
        let form = [("Content-Type", "application/x-www-form-urlencoded")]
        let (session, state) = (Capability().text, Capability().text)
        let requests: [(String, String, String, [(String, String)], String)] = [
            ("POST", "/register_device", "/register_device", json, #"{"email":"ana@example.com"}"#),
            ("POST", "/register_device", "/register_device", json, #"{"email":"ana"}"#),
            ("POST", "/register_device", "/register_device", json, #"{"email":"a@b.example"}"#),
            ("POST", "/register_device", "/register_device", [], "{}"),
            ("POST", "/register_device", "/register_device", json, String(repeating: " ", count: 5_000)),
            ("GET", "/sessions/{session_id}", "/sessions/\(session)", [], ""),
            ("GET", "/auth_callback", "/auth_callback?state=\(state)&code=x", [], ""),
            ("POST", "/auth_confirm", "/auth_confirm", form, "confirm=\(state)&decision=yes"),
            ("POST", "/auth_confirm", "/auth_confirm", form, String(repeating: "a", count: 5_000)),
            ("POST", "/v1/token", "/v1/token", json, "{}"),
            ("POST", "/v1/token", "/v1/token", json, #"{"credential":"x"}"#),
            ("POST", "/v1/token", "/v1/token", [], "{}"),
            ("POST", "/v1/token", "/v1/token", json, String(repeating: " ", count: 5_000)),
        ]
        for (method, path, target, headers, body) in requests {
            let answer = try await fixture.client.send(
                Request(
                    method, fixture.url(target), headers: headers, body: method == "GET" ? nil : Array(body.utf8),
                    totalMax: .seconds(40)))
            await seen.add(path, answer.status)
        }
    }

    /// An event's frame is what the document says, and no more.
    @Test func eventsHaveTheirShape() async throws {
        try await withOnboarding { fixture in
            let device = try await TestDevice(fixture)
            let socket = try await device.connect()
            let browser = TestBrowser(fixture: fixture)
            let retry = try #require(try await browser.logIn(at: device.loginURL, decision: "refuse").retry)
            #expect(try await browser.logIn(at: retry).status == 200)
            try await fixture.initializeWhenRegistered()
            try await socket.event("data ready")
            let shapes = await socket.events.map { [$0.name] + $0.payload.keys.sorted() }
            #expect(
                shapes == [
                    ["error", "code", "login_url", "message"],
                    ["token", "access_token", "expires_at", "token_type"], ["realm initialized", "path"],
                    ["data ready"],
                ])
            let text = try Self.document().text
            for name in shapes.joined() { #expect(text.contains(name), "\(name)") }
        }
    }

    @Test func everyProblemAndEventIsNamedInTheDocument() throws {
        let text = try Self.document().text
        let problems = [
            Problem.contentTypeWrong, Problems.malformed, Problems.emailUnusable, Problems.organisationUnknown,
            Problems.personUnknown, Problems.sessionUnknown, Problems.upgradeNeeded, Problems.tooMany,
            Problems.providerUnavailable, Problems.loginNotSetUp, Problems.databaseUnavailable,
            Problems.loginNeeded(.unknown), Problems.renewalUnderWay(seconds: 1), Problems.credentialMissing,
        ]
        for problem in problems {
            let name = problem.type.replacingOccurrences(of: "urn:fieldpost:problem:", with: "")
            #expect(text.contains("`\(name)`"), "\(name)")
        }
        for reason: LoginReason in [.unknown, .reused, .ended, .refusedByProvider, .tokenRefused] {
            #expect(text.contains("`\(reason.rawValue)`"), "\(reason)")
        }
        let codes: [LoginProblem] = [
            .consentRefused, .interrupted, .providerError(""), .providerUnavailable, .tokenRefused(""), .otherAddress,
            .emailUnverified(""), .boundElsewhere, .notConfirmed, .personUnknown,
        ]
        for code in codes { #expect(text.contains("`\(code.code)`"), "\(code.code)") }
        for close in [SessionClose.expired, SessionClose.replaced] { #expect(text.contains("\(close.code) ")) }
    }
}

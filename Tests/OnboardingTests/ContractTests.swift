import Foundation
import HTTP
import TestSupport
import Testing

@testable import Onboarding
@testable import Runtime
@testable import Sandbox

/// `deploy/openapi.yaml` says what onboarding answers.
@Suite struct ContractTests {
    /// Path → status codes, as the document lists them.
    private static func statuses() throws -> [String: Set<Int>] {
        let text = try String(contentsOf: projectFolder.appendingPathComponent("deploy/openapi.yaml"), encoding: .utf8)
        var statuses: [String: Set<Int>] = [:]
        var path = ""
        for line in text.split(separator: "\n") {
            if line.hasPrefix("components:") { break }
            if line.hasPrefix("  /"), line.hasSuffix(":") { path = String(line.dropFirst(2).dropLast()) }
            if line.hasPrefix("        \""), let status = Int(line.dropFirst(9).prefix(3)) {
                statuses[path, default: []].insert(status)
            }
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
            for path in ["/register_device", "/auth_confirm"] {
                let answer = try await fixture.client.send(Request(fixture.url(path)))
                #expect(answer.status == 405 && answer.headers["Allow"] == "POST")
            }
            let device = try await TestDevice(fixture)
            let plain = try await fixture.client.send(Request(fixture.url("/sessions/\(device.session)")))
            #expect(plain.status == 426 && statuses["/sessions/{session_id}"]?.contains(426) == true)
        }
    }

    @Test func everyProblemAndEventIsNamedInTheDocument() throws {
        let text = try String(contentsOf: projectFolder.appendingPathComponent("deploy/openapi.yaml"), encoding: .utf8)
        let problems = [
            Problem.contentTypeWrong, Problems.malformed, Problems.emailUnusable, Problems.organisationUnknown,
            Problems.personUnknown, Problems.sessionUnknown, Problems.upgradeNeeded, Problems.tooMany,
            Problems.providerUnavailable, Problems.loginNotSetUp, Problems.databaseUnavailable,
        ]
        for problem in problems {
            let name = problem.type.replacingOccurrences(of: "urn:fieldpost:problem:", with: "")
            #expect(text.contains("`\(name)`"), "\(name)")
        }
        let codes: [LoginProblem] = [
            .consentRefused, .interrupted, .providerError(""), .providerUnavailable, .tokenRefused(""), .otherAddress,
            .emailUnverified, .boundElsewhere, .notConfirmed, .personUnknown,
        ]
        for code in codes { #expect(text.contains("`\(code.code)`"), "\(code.code)") }
        for close in [SessionClose.expired, SessionClose.replaced] { #expect(text.contains("\(close.code) ")) }
    }
}

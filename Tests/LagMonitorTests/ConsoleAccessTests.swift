import Foundation
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import LagMonitor

/// Authentication, authorisation and rate limits of the console.
@Suite(.ownThreads) struct ConsoleAccessTests {
    static let readPaths = [
        "/api/session", "/api/overview", "/api/charts", "/api/topic?name=entry.events", "/api/back-ends",
        "/api/topic/messages?name=entry.events&environment=acme", "/api/deferred",
        "/api/deferred/key?group=g&environment=1&key=k",
        "/api/deferred/outcome?group=g&environment=1&key=k&subject=k",
        "/api/environments", "/api/audit", "/api/audit?action=login&before=5", "/api/realms?environment=acme",
        "/api/realm?environment=acme&path=/common",
        "/api/realm/objects?environment=acme&path=/common&kind=Person",
        "/api/realm/people?environment=acme&path=/common",
        "/api/trace?environment=acme&id=00000000-0000-4000-8000-000000000001",
    ]
    static let actPaths = [
        "/api/deferred/retry", "/api/deferred/retry-keys", "/api/deferred/discard", "/api/sign-out",
    ]
    private static let key = #"{"group":"entry-submitter","environment":1,"key":"k","version":"v"}"#

    @Test func requestsWithoutSessionAreUnauthorized() async throws {
        try await withConsole { fixture in
            try fixture.park("k", reason: "closed")
            let visitor = ConsoleVisitor(fixture)
            for forged in ["", String(repeating: "A", count: 43), "x; fieldpost-console=y", "'--"] {
                if !forged.isEmpty { visitor.forge(forged) }
                for path in Self.readPaths {
                    let response = try await visitor.send("GET", path)
                    let body = String(decoding: response.body, as: UTF8.self)
                    #expect(response.status == 401, "\(path)")
                    #expect(
                        body == #"{"type":"about:blank","title":"Unauthorized","status":401,"detail":"Sign in first."}"#
                    )
                }
                for path in Self.actPaths { #expect(try await visitor.act(path, Self.key) == 401, "\(path)") }
            }
            #expect(try fixture.acts("parked.discarded").isEmpty)
        }
    }

    @Test func administratorSignsInAndOut() async throws {
        try await withConsole { fixture in
            let visitor = ConsoleVisitor(fixture)
            let response = try await visitor.signIn()
            #expect(response.status == 303 && response.headers["Location"] == "/")
            let cookie = try #require(visitor.setCookies.last { $0.hasPrefix("fieldpost-console=") })
            #expect(cookie.contains("; HttpOnly; SameSite=Strict") && cookie.contains("Path=/"))
            let absent = ["/key", "/realm", "/messages"]
            for path in Self.readPaths where !absent.contains(where: { path.contains($0) }) {
                #expect(try await visitor.send("GET", path).status == 200, "\(path)")
            }
            #expect(try fixture.acts("console.opened") == ["console:ana@example.com ana@example.com"])
            let sessionID = visitor.cookies["fieldpost-console"] ?? ""
            #expect(try await visitor.act("/api/sign-out", "{}") == 204)
            visitor.forge(sessionID)
            #expect(try await visitor.send("GET", "/api/session").status == 401)
            #expect(try fixture.acts("console.closed").count == 1)
        }
    }

    @Test func nonAdministratorIsRefusedAndAudited() async throws {
        try await withConsole { fixture in
            let visitor = ConsoleVisitor(fixture)
            let response = try await visitor.signIn(as: ConsoleFixture.nonAdministrator)
            #expect(response.status == 403 && visitor.cookies["fieldpost-console"] == nil)
            for path in Self.readPaths { #expect(try await visitor.send("GET", path).status == 401, "\(path)") }
            #expect(try fixture.acts("console.refused") == ["console:eve@example.com eve@example.com"])
            #expect(try fixture.acts("console.opened").isEmpty)
        }
    }

    @Test func loginCompletesOnlyInTheBrowserThatStartedIt() async throws {
        try await withConsole { fixture in
            let (attacker, victim) = (ConsoleVisitor(fixture), ConsoleVisitor(fixture))
            let callback = try await attacker.logIn(as: ConsoleFixture.administrator)
            #expect(try await victim.send("GET", callback).status == 400, "no login was started there")
            _ = try await victim.send("GET", "/sign-in")
            #expect(try await victim.send("GET", callback).status == 400, "another login was started there")
            #expect(try await attacker.send("GET", callback).status == 303)
            #expect(try await attacker.send("GET", callback).status == 400, "it is used once")
            _ = try await victim.send("GET", "/sign-in")
            let state = victim.cookies["fieldpost-console-login"]?.split(separator: ".").first.map(String.init) ?? ""
            for bad in ["error=access_denied", "code=wrong", "code=", "code=x&iss=https://evil.example"] {
                let response = try await victim.send("GET", "/callback?\(bad)&state=\(state)")
                #expect(response.status == 403 || response.status == 400, "\(bad)")
            }
            #expect(try await victim.send("GET", "/api/session").status == 401)
        }
    }

    @Test func idleSessionExpires() async throws {
        let time = TestTime()
        try await withConsole(idleMax: .seconds(1), now: { time.now }) { fixture in
            let visitor = ConsoleVisitor(fixture)
            let signIn = try await visitor.signIn()
            #expect(signIn.status == 303)
            time.advance(.seconds(2))
            let session = try await visitor.send("GET", "/api/session")
            #expect(session.status == 401)
        }
    }

    /// Automatic refreshes do not extend a session; user activity does.
    @Test func automaticRefreshesDoNotExtendSession() async throws {
        let time = TestTime()
        try await withConsole(idleMax: .seconds(100), now: { time.now }) { fixture in
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let automatic = [("fieldpost-console-automatic", "1")]
            time.advance(.seconds(60))
            #expect(try await visitor.send("GET", "/api/overview").status == 200)
            for _ in 0..<2 {
                time.advance(.seconds(45))
                #expect(try await visitor.send("GET", "/api/overview", headers: automatic).status == 200)
            }
            time.advance(.seconds(11))
            #expect(try await visitor.send("GET", "/api/overview", headers: automatic).status == 401)
            #expect(try await visitor.send("GET", "/api/overview").status == 401)
        }
    }

    /// One network's sign-in attempts do not affect other networks.
    @Test func signInLimitIsPerNetwork() async throws {
        try await withConsole(proxyCount: 1) { fixture in
            let (attacker, visitor) = (ConsoleVisitor(fixture), ConsoleVisitor(fixture))
            attacker.headers = [("X-Forwarded-For", "192.0.2.66")]
            visitor.headers = [("X-Forwarded-For", "192.0.2.1")]
            for _ in 0..<SignInBudget.requestCountMax {
                let response = try await attacker.send("GET", "/callback?state=x")
                #expect(response.status == 400)
            }
            for path in ["/callback?state=x", "/sign-in"] {
                let response = try await attacker.send("GET", path)
                #expect(response.status == 429, "\(path)")
            }
            let response = try await visitor.signIn()
            #expect(response.status == 303)
        }
    }

    /// Guesses of session ids are rate limited, without affecting an administrator at the same address.
    @Test func sessionGuessesAreRateLimited() async throws {
        try await withConsole { fixture in
            let (attacker, visitor) = (ConsoleVisitor(fixture), ConsoleVisitor(fixture))
            _ = try await visitor.signIn()
            var statuses: [Int] = []
            for number in 0..<70 {
                attacker.forge("\(number)")
                statuses.append(try await attacker.send("GET", "/api/overview").status)
            }
            #expect(statuses.first == 401 && statuses.last == 429, "\(statuses)")
            #expect(try await visitor.send("GET", "/api/overview").status == 200)
            let other = ConsoleVisitor(fixture)
            #expect(try await other.signIn().status == 303)
        }
    }

    @Test func crossSiteRequestsAreRejected() async throws {
        try await withConsole { fixture in
            try fixture.park("k", reason: "closed")
            let (visitor, other) = (ConsoleVisitor(fixture), ConsoleVisitor(fixture))
            _ = try await visitor.signIn()
            _ = try await other.signIn()
            for path in Self.actPaths {
                #expect(try await visitor.act(path, Self.key, origin: "https://evil.example") == 403, "\(path)")
                #expect(try await visitor.act(path, Self.key, origin: "null") == 403, "\(path)")
                #expect(try await visitor.act(path, Self.key, token: "") == 403, "\(path)")
                #expect(try await visitor.act(path, Self.key, token: other.token) == 403, "\(path)")
                // As sent by a form or a link of another site.
                let form = try await visitor.send(
                    "POST", path, headers: [("Content-Type", "text/plain"), ("Sec-Fetch-Site", "cross-site")],
                    body: Self.key)
                #expect(form.status == 403, "\(path)")
                #expect(try await visitor.send("GET", path).status == 405, "\(path)")
            }
            let read = try await visitor.send("GET", "/api/deferred", headers: [("Sec-Fetch-Site", "same-site")])
            #expect(read.status == 403)
            #expect(try fixture.acts("parked.discarded").isEmpty)
            #expect(try await visitor.act("/api/deferred/discard", #"{"group":1}"#) == 400)
            #expect(try await visitor.act("/api/deferred/discard", String(repeating: " ", count: 20_000)) == 413)
            let displayed = fixture.body("k", version: try fixture.version(of: "k"))
            #expect(try await visitor.act("/api/deferred/discard", displayed) == 204)
            #expect(try fixture.acts("parked.discarded") == ["console:ana@example.com k"])
            #expect(try await visitor.act("/api/deferred/discard", displayed) == 404)
            #expect(try fixture.acts("parked.discarded").count == 1, "nothing was changed and nothing audited")
        }
    }

    @Test func pageIsSmallAndHasSecurityPolicy() async throws {
        try await withConsole { fixture in
            let visitor = ConsoleVisitor(fixture)
            var byteCount = 0
            for file in ConsolePage.files {
                let response = try await visitor.send("GET", "\(file.path)")
                byteCount += response.body.count
                let policy = try #require(response.headers["Content-Security-Policy"])
                #expect(response.status == 200 && policy.contains("default-src 'none'") && !policy.contains("unsafe"))
                #expect(response.headers["X-Content-Type-Options"] == "nosniff")
                let tag = try #require(response.headers["ETag"])
                let second = try await visitor.send("GET", "\(file.path)", headers: [("If-None-Match", tag)])
                #expect(second.status == 304 && second.body.isEmpty)
            }
            #expect((10_000..<150_000).contains(byteCount), "\(byteCount) bytes")
        }
    }
}

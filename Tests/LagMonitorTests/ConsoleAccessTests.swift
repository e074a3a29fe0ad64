import Foundation
import HTTPClient
import Model
import Postgres
import TestSupport
import Testing

@testable import LagMonitor

/// Who gets in at the console, and who sees nothing.
@Suite(.ownThreads) struct ConsoleAccessTests {
    static let readPaths = [
        "/api/session", "/api/overview", "/api/charts", "/api/parked", "/api/parked/key?group=g&environment=1&key=k",
        "/api/parked/outcome?group=g&environment=1&key=k&subject=k",
        "/api/environments", "/api/audit", "/api/audit?action=login&before=5", "/api/realms?environment=acme",
        "/api/realm?environment=acme&path=/common",
        "/api/realm/objects?environment=acme&path=/common&kind=Person",
        "/api/realm/people?environment=acme&path=/common",
        "/api/trace?environment=acme&id=00000000-0000-4000-8000-000000000001",
    ]
    static let actPaths = ["/api/parked/retry", "/api/parked/discard", "/api/sign-out"]
    private static let key = #"{"group":"entry-submitter","environment":1,"key":"k","version":"v"}"#

    @Test func withoutASessionThereIsNothing() async throws {
        try await withConsole { fixture in
            try fixture.park("k", reason: "closed")
            let visitor = ConsoleVisitor(fixture)
            for forged in ["", String(repeating: "A", count: 43), "x; fieldpost-console=y", "'--"] {
                if !forged.isEmpty { visitor.forge(forged) }
                for path in Self.readPaths {
                    let answer = try await visitor.send("GET", path)
                    let body = String(decoding: answer.body, as: UTF8.self)
                    #expect(answer.status == 401, "\(path)")
                    #expect(body == #"{"type":"about:blank","title":"Unauthorized","status":401,"detail":"Sign in."}"#)
                }
                for path in Self.actPaths { #expect(try await visitor.act(path, Self.key) == 401, "\(path)") }
            }
            #expect(try fixture.acts("parked.discarded").isEmpty)
        }
    }

    @Test func anAdministratorComesInAndGoes() async throws {
        try await withConsole { fixture in
            let visitor = ConsoleVisitor(fixture)
            let answer = try await visitor.signIn()
            #expect(answer.status == 303 && answer.headers["Location"] == "/")
            let cookie = try #require(visitor.setCookies.last { $0.hasPrefix("fieldpost-console=") })
            #expect(cookie.contains("; HttpOnly; SameSite=Strict") && cookie.contains("Path=/"))
            for path in Self.readPaths where !path.contains("/key") && !path.contains("/realm") {
                #expect(try await visitor.send("GET", path).status == 200, "\(path)")
            }
            #expect(try fixture.acts("console.opened") == ["console:ana@example.com ana@example.com"])
            let held = visitor.cookies["fieldpost-console"] ?? ""
            #expect(try await visitor.act("/api/sign-out", "{}") == 204)
            visitor.forge(held)
            #expect(try await visitor.send("GET", "/api/session").status == 401)
            #expect(try fixture.acts("console.closed").count == 1)
        }
    }

    @Test func whoIsNoAdministratorIsToldSoAndRecorded() async throws {
        try await withConsole { fixture in
            let visitor = ConsoleVisitor(fixture)
            let answer = try await visitor.signIn(as: ConsoleFixture.stranger)
            #expect(answer.status == 403 && visitor.cookies["fieldpost-console"] == nil)
            for path in Self.readPaths { #expect(try await visitor.send("GET", path).status == 401, "\(path)") }
            #expect(try fixture.acts("console.refused") == ["console:eve@example.com eve@example.com"])
            #expect(try fixture.acts("console.opened").isEmpty)
        }
    }

    @Test func aLoginEndsOnlyInTheBrowserThatBeganIt() async throws {
        try await withConsole { fixture in
            let (attacker, victim) = (ConsoleVisitor(fixture), ConsoleVisitor(fixture))
            let answer = try await attacker.logIn(as: ConsoleFixture.administrator)
            #expect(try await victim.send("GET", answer).status == 400, "nothing was begun there")
            _ = try await victim.send("GET", "/sign-in")
            #expect(try await victim.send("GET", answer).status == 400, "another login was begun there")
            #expect(try await attacker.send("GET", answer).status == 303)
            #expect(try await attacker.send("GET", answer).status == 400, "it is used once")
            _ = try await victim.send("GET", "/sign-in")
            let state = victim.cookies["fieldpost-console-login"]?.split(separator: ".").first.map(String.init) ?? ""
            for bad in ["error=access_denied", "code=wrong", "code=", "code=x&iss=https://evil.example"] {
                let answer = try await victim.send("GET", "/callback?\(bad)&state=\(state)")
                #expect(answer.status == 403 || answer.status == 400, "\(bad)")
            }
            #expect(try await victim.send("GET", "/api/session").status == 401)
        }
    }

    @Test func anIdleSessionIsOver() async throws {
        let time = TestTime()
        try await withConsole(idleMax: .seconds(1), now: { time.now }) { fixture in
            let visitor = ConsoleVisitor(fixture)
            let signedIn = try await visitor.signIn()
            #expect(signedIn.status == 303)
            time.pass(.seconds(2))
            let session = try await visitor.send("GET", "/api/session")
            #expect(session.status == 401)
        }
    }

    /// What the page asks by itself keeps no session alive; what a person does, does.
    @Test func aPageThatNobodyUsesIsSignedOut() async throws {
        let time = TestTime()
        try await withConsole(idleMax: .seconds(100), now: { time.now }) { fixture in
            let visitor = ConsoleVisitor(fixture)
            _ = try await visitor.signIn()
            let automatic = [("fieldpost-console-automatic", "1")]
            time.pass(.seconds(60))
            #expect(try await visitor.send("GET", "/api/overview").status == 200)
            for _ in 0..<2 {
                time.pass(.seconds(45))
                #expect(try await visitor.send("GET", "/api/overview", headers: automatic).status == 200)
            }
            time.pass(.seconds(11))
            #expect(try await visitor.send("GET", "/api/overview", headers: automatic).status == 401)
            #expect(try await visitor.send("GET", "/api/overview").status == 401)
        }
    }

    /// One stranger's sign-ins keep nobody out who comes from elsewhere.
    @Test func whoSignsInTooOftenIsRefusedAlone() async throws {
        try await withConsole(proxyCount: 1) { fixture in
            let (stranger, visitor) = (ConsoleVisitor(fixture), ConsoleVisitor(fixture))
            stranger.headers = [("X-Forwarded-For", "192.0.2.66")]
            visitor.headers = [("X-Forwarded-For", "192.0.2.1")]
            for _ in 0..<SignInBudget.requestCountMax {
                let answer = try await stranger.send("GET", "/callback?state=x")
                #expect(answer.status == 400)
            }
            for path in ["/callback?state=x", "/sign-in"] {
                let answer = try await stranger.send("GET", path)
                #expect(answer.status == 429, "\(path)")
            }
            let answer = try await visitor.signIn()
            #expect(answer.status == 303)
        }
    }

    /// Sessions cannot be guessed without end, and an administrator behind the same address is not held back for it.
    @Test func guessedSessionsAreLimited() async throws {
        try await withConsole { fixture in
            let (stranger, visitor) = (ConsoleVisitor(fixture), ConsoleVisitor(fixture))
            _ = try await visitor.signIn()
            var statuses: [Int] = []
            for number in 0..<70 {
                stranger.forge("\(number)")
                statuses.append(try await stranger.send("GET", "/api/overview").status)
            }
            #expect(statuses.first == 401 && statuses.last == 429, "\(statuses)")
            #expect(try await visitor.send("GET", "/api/overview").status == 200)
            let other = ConsoleVisitor(fixture)
            #expect(try await other.signIn().status == 303)
        }
    }

    @Test func whatAnotherSiteSendsChangesNothing() async throws {
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
                // As a form of another site would send it, and by a link.
                let form = try await visitor.send(
                    "POST", path, headers: [("Content-Type", "text/plain"), ("Sec-Fetch-Site", "cross-site")],
                    body: Self.key)
                #expect(form.status == 403, "\(path)")
                #expect(try await visitor.send("GET", path).status == 405, "\(path)")
            }
            let read = try await visitor.send("GET", "/api/parked", headers: [("Sec-Fetch-Site", "same-site")])
            #expect(read.status == 403)
            #expect(try fixture.acts("parked.discarded").isEmpty)
            #expect(try await visitor.act("/api/parked/discard", #"{"group":1}"#) == 400)
            #expect(try await visitor.act("/api/parked/discard", String(repeating: " ", count: 20_000)) == 413)
            let seen = fixture.body("k", version: try fixture.version(of: "k"))
            #expect(try await visitor.act("/api/parked/discard", seen) == 204)
            #expect(try fixture.acts("parked.discarded") == ["console:ana@example.com k"])
            #expect(try await visitor.act("/api/parked/discard", seen) == 404)
            #expect(try fixture.acts("parked.discarded").count == 1, "nothing was done, and nothing is told")
        }
    }

    @Test func thePageIsSmallAndKeepsItsPolicy() async throws {
        try await withConsole { fixture in
            let visitor = ConsoleVisitor(fixture)
            var byteCount = 0
            for file in ConsolePage.files {
                let answer = try await visitor.send("GET", "\(file.path)")
                byteCount += answer.body.count
                let policy = try #require(answer.headers["Content-Security-Policy"])
                #expect(answer.status == 200 && policy.contains("default-src 'none'") && !policy.contains("unsafe"))
                #expect(answer.headers["X-Content-Type-Options"] == "nosniff")
                let tag = try #require(answer.headers["ETag"])
                let again = try await visitor.send("GET", "\(file.path)", headers: [("If-None-Match", tag)])
                #expect(again.status == 304 && again.body.isEmpty)
            }
            #expect((10_000..<150_000).contains(byteCount), "\(byteCount) bytes")
        }
    }
}

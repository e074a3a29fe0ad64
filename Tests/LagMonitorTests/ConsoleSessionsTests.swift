import TestSupport
import Testing

@testable import LagMonitor

@Suite(.ownThreads) struct ConsoleSessionsTests {
    private let time = TestTime()

    private func make(age: Duration = .seconds(1_000), idle: Duration = .seconds(100)) -> ConsoleSessions {
        ConsoleSessions(ageMax: age, idleMax: idle, now: { [time] in time.now })
    }

    private func email(_ result: ConsoleSessions.Lookup) -> String? {
        switch result {
        case .session(let session): session.email
        case .none, .busy: nil
        }
    }

    @Test func sessionExpiresByAgeIdlenessOrSignOut() {
        let sessions = make()
        let (a, b) = (sessions.create("ana@example.com"), sessions.create("bo@example.com"))
        #expect(a != b && a.utf8.count == 43)
        #expect(email(sessions.use(a)) == "ana@example.com")
        #expect(email(sessions.use("x" + a.dropFirst())) == nil)
        time.advance(.seconds(99))
        #expect(email(sessions.use(a)) == "ana@example.com")
        time.advance(.seconds(2))
        #expect(email(sessions.use(b)) == nil, "idle")
        #expect(email(sessions.use(a)) == "ana@example.com")
        for _ in 0..<10 {
            time.advance(.seconds(99))
            _ = sessions.use(a)
        }
        #expect(email(sessions.use(a)) == nil, "expired, although never idle")
        let c = sessions.create("cy@example.com")
        sessions.end(c)
        #expect(email(sessions.use(c)) == nil)
    }

    @Test func automaticRequestsAreNoActivity() {
        let sessions = make()
        let a = sessions.create("ana@example.com")
        time.advance(.seconds(60))
        #expect(email(sessions.use(a, isAutomatic: true)) == "ana@example.com")
        time.advance(.seconds(41))
        #expect(email(sessions.use(a, isAutomatic: true)) == nil)
    }

    @Test func sessionsAndRequestsAreLimited() {
        let sessions = make()
        let first = sessions.create("ana@example.com")
        for _ in 0..<ConsoleSessions.countMax {
            time.advance(.milliseconds(1))
            _ = sessions.create("bo@example.com")
        }
        #expect(sessions.count == ConsoleSessions.countMax)
        #expect(email(sessions.use(first)) == nil, "the least recently used session is replaced")
        let busy = sessions.create("cy@example.com")
        for _ in 0..<ConsoleSessions.requestCountMax { _ = sessions.use(busy) }
        #expect(sessions.use(busy) == .busy)
        time.advance(.seconds(61))
        #expect(email(sessions.use(busy)) == "cy@example.com")
    }
}

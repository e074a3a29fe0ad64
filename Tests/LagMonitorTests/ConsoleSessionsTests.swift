import Testing

@testable import LagMonitor

@Suite struct ConsoleSessionsTests {
    private let time = TestTime()

    private func make(age: Duration = .seconds(1_000), idle: Duration = .seconds(100)) -> ConsoleSessions {
        ConsoleSessions(ageMax: age, idleMax: idle, now: { [time] in time.now })
    }

    private func email(_ found: ConsoleSessions.Found) -> String? {
        switch found {
        case .session(let session): session.email
        case .none, .busy: nil
        }
    }

    @Test func aSessionIsOverWhenItIsOldIdleOrEnded() {
        let sessions = make()
        let (a, b) = (sessions.begin("ana@example.com"), sessions.begin("bo@example.com"))
        #expect(a != b && a.utf8.count == 43)
        #expect(email(sessions.use(a)) == "ana@example.com")
        #expect(email(sessions.use("x" + a.dropFirst())) == nil)
        time.pass(.seconds(99))
        #expect(email(sessions.use(a)) == "ana@example.com")
        time.pass(.seconds(2))
        #expect(email(sessions.use(b)) == nil, "idle")
        #expect(email(sessions.use(a)) == "ana@example.com")
        for _ in 0..<10 {
            time.pass(.seconds(99))
            _ = sessions.use(a)
        }
        #expect(email(sessions.use(a)) == nil, "old, though it was never idle")
        let c = sessions.begin("cy@example.com")
        sessions.end(c)
        #expect(email(sessions.use(c)) == nil)
    }

    @Test func whatIsAskedByThePageItselfIsNoUse() {
        let sessions = make()
        let a = sessions.begin("ana@example.com")
        time.pass(.seconds(60))
        #expect(email(sessions.use(a, isAutomatic: true)) == "ana@example.com")
        time.pass(.seconds(41))
        #expect(email(sessions.use(a, isAutomatic: true)) == nil)
    }

    @Test func sessionsAndTheirRequestsAreBounded() {
        let sessions = make()
        let first = sessions.begin("ana@example.com")
        for _ in 0..<ConsoleSessions.countMax {
            time.pass(.milliseconds(1))
            _ = sessions.begin("bo@example.com")
        }
        #expect(sessions.count == ConsoleSessions.countMax)
        #expect(email(sessions.use(first)) == nil, "the one that was used longest ago makes room")
        let busy = sessions.begin("cy@example.com")
        for _ in 0..<ConsoleSessions.requestCountMax { _ = sessions.use(busy) }
        #expect(sessions.use(busy) == .busy)
        time.pass(.seconds(61))
        #expect(email(sessions.use(busy)) == "cy@example.com")
    }
}

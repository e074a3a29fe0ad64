import HTTPServer
import Testing

@testable import LagMonitor

@Suite struct SignInBudgetTests {
    private let time = TestTime()

    private func make() -> SignInBudget { SignInBudget(now: { [time] in time.now }) }

    /// A request that is answered at once.
    private func isTaken(_ network: String, _ budget: SignInBudget) -> Bool {
        guard let taken = budget.take(network) else { return false }
        budget.end(taken)
        return true
    }

    @Test func oneStrangerUsesUpOnlyTheirOwn() async throws {
        let budget = make()
        for _ in 0..<SignInBudget.requestCountMax { #expect(isTaken("192.0.2.1", budget)) }
        #expect(!isTaken("192.0.2.1", budget))
        #expect(isTaken("192.0.2.2", budget))
        let problem = await #expect(throws: Problem.self) { try await budget.during("192.0.2.1") {} }
        #expect(problem?.detail?.hasPrefix("Too many") == true)
        time.pass(SignInBudget.refillInterval)
        #expect(isTaken("192.0.2.1", budget))
        #expect(!isTaken("192.0.2.1", budget))
    }

    /// One that waits between its attempts is refused in the end, and what succeeds is not counted.
    @Test func slowGuessesAreRefusedAndSuccessIsNotCounted() {
        let budget = make()
        var taken = 0
        while taken < 200, isTaken("192.0.2.1", budget) {
            taken += 1
            time.pass(.seconds(1))
        }
        #expect((60...80).contains(taken), "\(taken)")
        for _ in 0..<200 {
            #expect(isTaken("192.0.2.2", budget) && isTaken("192.0.2.2", budget))
            budget.giveBack("192.0.2.2")
        }
    }

    /// Who has one IPv6 address has many of them.
    @Test func aNetworkIsOneStranger() async throws {
        let budget = make()
        for number in 0..<SignInBudget.requestCountMax {
            try await budget.during("2001:db8::\(String(number, radix: 16))") {}
        }
        await #expect(throws: Problem.self) { try await budget.during("2001:db8::ffff") {} }
        try await budget.during("2001:db8:0:1::1") {}
    }

    /// Requests for which a provider takes its time are bounded too, of one network and of all.
    @Test func whatIsUnderWayIsBounded() {
        let budget = make()
        for _ in 0..<SignInBudget.openCountMax { #expect(budget.take("192.0.2.1") != nil) }
        #expect(budget.take("192.0.2.1") == nil)
        var openCount = SignInBudget.openCountMax
        var number = 0
        while openCount < SignInBudget.totalOpenCountMax {
            number += 1
            #expect(budget.take("net \(number / SignInBudget.openCountMax)") != nil)
            openCount += 1
        }
        #expect(budget.take("192.0.2.9") == nil)
        budget.end("192.0.2.1")
        #expect(budget.take("192.0.2.9") != nil)
    }

    @Test func networksThatAreRememberedAreBounded() {
        let budget = make()
        for number in 0..<SignInBudget.networkCountMax { #expect(isTaken("net \(number)", budget)) }
        for number in 0..<SignInBudget.requestCountMax { #expect(isTaken("more \(number)", budget)) }
        #expect(!isTaken("one more", budget), "those that find no place share one budget")
        #expect(isTaken("net 1", budget))
        #expect(budget.networkCount == SignInBudget.networkCountMax + 1)
        time.pass(SignInBudget.refillInterval * SignInBudget.requestCountMax)
        #expect(isTaken("one more", budget))
        #expect(budget.networkCount == 1)
    }
}

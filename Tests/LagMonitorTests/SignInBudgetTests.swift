import HTTPServer
import TestSupport
import Testing

@testable import LagMonitor

@Suite(.ownThreads) struct SignInBudgetTests {
    private let time = TestTime()

    private func make() -> SignInBudget { SignInBudget(now: { [time] in time.now }) }

    /// Whether a request that completes immediately is within the limits.
    private func isAllowed(_ network: String, _ budget: SignInBudget) -> Bool {
        guard let name = budget.acquire(network) else { return false }
        budget.release(name)
        return true
    }

    @Test func budgetsOfNetworksAreSeparate() async throws {
        let budget = make()
        for _ in 0..<SignInBudget.requestCountMax { #expect(isAllowed("192.0.2.1", budget)) }
        #expect(!isAllowed("192.0.2.1", budget))
        #expect(isAllowed("192.0.2.2", budget))
        let problem = await #expect(throws: Problem.self) { try await budget.run("192.0.2.1") {} }
        #expect(problem?.detail?.hasPrefix("Too many") == true)
        time.advance(SignInBudget.refillInterval)
        #expect(isAllowed("192.0.2.1", budget))
        #expect(!isAllowed("192.0.2.1", budget))
    }

    /// Guesses above the refill rate are eventually rejected; successful sign-ins are not counted.
    @Test func slowGuessesAreLimitedAndSuccessesRefunded() {
        let budget = make()
        var allowedCount = 0
        while allowedCount < 200, isAllowed("192.0.2.1", budget) {
            allowedCount += 1
            time.advance(.seconds(1))
        }
        #expect((60...80).contains(allowedCount), "\(allowedCount)")
        for _ in 0..<200 {
            #expect(isAllowed("192.0.2.2", budget) && isAllowed("192.0.2.2", budget))
            budget.refund("192.0.2.2")
        }
    }

    /// A client with one IPv6 address usually has a whole network.
    @Test func ipv6NetworkSharesBudget() async throws {
        let budget = make()
        for number in 0..<SignInBudget.requestCountMax {
            try await budget.run("2001:db8::\(String(number, radix: 16))") {}
        }
        await #expect(throws: Problem.self) { try await budget.run("2001:db8::ffff") {} }
        try await budget.run("2001:db8:0:1::1") {}
    }

    /// Concurrent requests are limited per network and in total.
    @Test func concurrentRequestsAreLimited() {
        let budget = make()
        for _ in 0..<SignInBudget.openCountMax { #expect(budget.acquire("192.0.2.1") != nil) }
        #expect(budget.acquire("192.0.2.1") == nil)
        var openCount = SignInBudget.openCountMax
        var number = 0
        while openCount < SignInBudget.totalOpenCountMax {
            number += 1
            #expect(budget.acquire("net \(number / SignInBudget.openCountMax)") != nil)
            openCount += 1
        }
        #expect(budget.acquire("192.0.2.9") == nil)
        budget.release("192.0.2.1")
        #expect(budget.acquire("192.0.2.9") != nil)
    }

    @Test func networkCountIsLimited() {
        let budget = make()
        for number in 0..<SignInBudget.networkCountMax { #expect(isAllowed("net \(number)", budget)) }
        for number in 0..<SignInBudget.requestCountMax { #expect(isAllowed("more \(number)", budget)) }
        #expect(!isAllowed("another", budget), "further networks share one budget")
        #expect(isAllowed("net 1", budget))
        #expect(budget.networkCount == SignInBudget.networkCountMax + 1)
        time.advance(SignInBudget.refillInterval * SignInBudget.requestCountMax)
        #expect(isAllowed("another", budget))
        #expect(budget.networkCount == 1)
    }
}

import Model
import TestSupport
import Testing

@testable import NoticeDeliverer

@Suite(.ownThreads) struct DeliveryProblemRuleTests {
    @Test func lastProblemStaysUntilItsChannelWorks() {
        func problem(
            _ stored: String?, new: String? = nil, choiceError: String? = nil, working: Set<Channel> = []
        ) -> String? {
            DeliveryProblemRule.problem(stored: stored, new: new, choiceError: choiceError, working: working)
        }
        #expect(problem(nil, new: "webhook: no", choiceError: "choice: no") == "webhook: no")
        #expect(problem("webhook: no") == "webhook: no" && problem("webhook: no", working: [.email]) == "webhook: no")
        #expect(problem("webhook: no", working: [.webhook]) == nil)
        #expect(problem(nil, choiceError: "choice: no") == "choice: no" && problem("choice: no") == nil)
    }
}

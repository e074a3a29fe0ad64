import Model
import Testing

@testable import NoticeDeliverer

@Suite struct ProblemRuleTests {
    @Test func theLastProblemIsToldUntilItsWayWorks() {
        func problem(
            _ stored: String?, new: String? = nil, objection: String? = nil, working: Set<Way> = []
        ) -> String? {
            ProblemRule.problem(stored: stored, new: new, objection: objection, working: working)
        }
        #expect(problem(nil, new: "webhook: no", objection: "choice: no") == "webhook: no")
        #expect(problem("webhook: no") == "webhook: no" && problem("webhook: no", working: [.email]) == "webhook: no")
        #expect(problem("webhook: no", working: [.webhook]) == nil)
        #expect(problem(nil, objection: "choice: no") == "choice: no" && problem("choice: no") == nil)
    }
}

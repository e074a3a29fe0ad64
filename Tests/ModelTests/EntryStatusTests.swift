import Model
import Testing

@Suite struct EntryStatusTests {
    @Test func forwardOrderAllowsStepsAndSkips() {
        let order: [EntryStatus] = [.suggestion, .draft, .submitted, .released, .approved, .recorded]
        for (status, next) in zip(order, order.dropFirst()) { #expect(status.canMove(to: next)) }
        #expect(EntryStatus.submitted.canMove(to: .approved))
        #expect(EntryStatus.suggestion.canMove(to: .submitted))
    }

    @Test(arguments: [
        (EntryStatus.approved, EntryStatus.released), (.rejected, .released), (.rejected, .submitted),
        (.released, .submitted), (.invalid, .submitted), (.invalid, .draft), (.approved, .rejected),
        (.released, .rejected), (.approved, .submitted),
    ])
    func backwardTransitionsAreAllowed(from: EntryStatus, to: EntryStatus) {
        #expect(from.canMove(to: to))
    }

    @Test func deviceCannotMakeSubmittedEntryADraft() {
        for status in EntryStatus.allCases {
            #expect(!status.canMove(to: .suggestion))
            #expect(status.deviceMay(moveTo: .draft) == [.suggestion, .invalid].contains(status))
            // The server does, when the entry is withdrawn.
            #expect(status.canMove(to: .draft) == ![.draft, .recorded].contains(status))
            for next in EntryStatus.allCases where next != .draft { #expect(!status.deviceMay(moveTo: next)) }
        }
    }

    @Test func recordedEntryIsFinal() {
        #expect(EntryStatus.recorded.successors.isEmpty)
        #expect(EntryStatus.allCases.filter(\.isClosed) == [.recorded])
    }

    @Test func sameStatusIsNoTransition() {
        for status in EntryStatus.allCases { #expect(!status.canMove(to: status)) }
    }

    @Test func deviceSetsOnlySuggestionAndDraft() {
        #expect(EntryStatus.allCases.filter(EntryStatus.deviceMay) == [.suggestion, .draft])
    }

    @Test func everyStatusExceptSuggestionIsReachable() {
        for status in EntryStatus.allCases {
            #expect(EntryStatus.allCases.contains { $0.canMove(to: status) } == (status != .suggestion))
        }
    }
}

import Essentials
import FoundationEssentials
import Model
import Testing

@testable import TaskFanOut

/// The rule as tables.
@Suite struct TaskRuleTests {
    private static let open = TaskProgress()
    private static let done = TaskProgress(isCompleted: true, completionDate: "2026-03-30T09:40:00.000Z")
    private static let doneLater = TaskProgress(isCompleted: true, completionDate: "2026-03-31T10:00:00.000Z")

    /// Master, copy, what was agreed, whether the copy was edited later, and what both are to be.
    @Test(arguments: [
        (open, open, open, true, open),
        // The copy alone was changed, whatever was edited later: a new title is no word on the progress.
        (open, done, open, true, done), (open, done, open, false, done),
        (done, open, done, false, open),
        // The master alone.
        (done, open, open, true, done), (open, done, done, true, open),
        // Both, to the same.
        (done, done, open, true, done),
        // Both, to something else: the later edit.
        (done, doneLater, open, true, doneLater), (done, doneLater, open, false, done),
        (open, doneLater, done, true, doneLater), (open, doneLater, done, false, open),
    ])
    func whoChangedTheProgressWins(
        _ master: TaskProgress, _ copy: TaskProgress, _ agreed: TaskProgress, _ isCopyLater: Bool,
        _ expected: TaskProgress
    ) {
        var facts = TaskFacts(master: .init(progress: master, editPosition: 10))
        facts.copy = .init(progress: copy, editPosition: isCopyLater ? 11 : 9)
        facts.agreed = agreed
        #expect(TaskRule.decide(facts).progress == expected)
    }

    @Test func withoutACopyTheMasterSays() {
        var facts = TaskFacts(master: .init(progress: Self.done, editPosition: 10))
        #expect(TaskRule.decide(facts).progress == Self.done)
        facts.agreed = Self.open
        #expect(TaskRule.decide(facts).progress == Self.done)
    }

    private enum Team: CaseIterable { case none, gone, there }
    private enum Person: CaseIterable { case none, gone, stranger, member }

    /// Every team and assignee: where the copy is, and whom the master names from now on.
    @Test func whereTheCopyIs() {
        let (team, person) = (UUID(), UUID())
        for teamIs in Team.allCases {
            for personIs in Person.allCases {
                var facts = TaskFacts(master: .init(progress: Self.open, editPosition: 10))
                if teamIs != .none { facts.team = .init(id: team, isThere: teamIs == .there) }
                if personIs != .none { facts.assignee = .init(id: person, isThere: personIs != .gone) }
                facts.isMember = personIs == .member
                let keepsPerson = personIs == .member || personIs == .stranger && teamIs != .there
                let place: TaskDecision.Place =
                    teamIs == .there ? .team(team) : keepsPerson ? .person(person) : .none
                let expected = TaskDecision(
                    progress: Self.open, team: teamIs == .there ? team : nil, assignee: keepsPerson ? person : nil,
                    place: place, isArchived: false)
                #expect(TaskRule.decide(facts) == expected, "\(teamIs) \(personIs)")
            }
        }
    }

    /// Whether it is done, old and very old; whether it has a copy, and is archived.
    @Test(arguments: [
        (false, false, false, true, false), (true, false, false, true, false), (true, true, false, false, false),
        (true, true, true, false, true),
        // It was done long ago, and is not any more.
        (false, true, true, true, false),
    ])
    func whatWasDoneLongAgoIsOutOfTheWay(
        _ isDone: Bool, _ isOld: Bool, _ isVeryOld: Bool, _ hasCopy: Bool, _ isArchived: Bool
    ) {
        var facts = TaskFacts(master: .init(progress: isDone ? Self.done : Self.open, editPosition: 10))
        facts.team = .init(id: UUID(), isThere: true)
        (facts.isOld, facts.isVeryOld) = (isOld, isVeryOld)
        facts.agreed = Self.done
        let decision = TaskRule.decide(facts)
        #expect((decision.place != .none) == hasCopy && decision.isArchived == isArchived)
    }

    /// It was done long ago, and another date is told of it on the copy now.
    @Test func aNewCompletionIsNotOld() {
        var facts = TaskFacts(master: .init(progress: Self.done, editPosition: 10))
        facts.copy = .init(progress: Self.doneLater, editPosition: 11)
        (facts.agreed, facts.isOld, facts.isVeryOld) = (Self.done, true, true)
        facts.team = .init(id: UUID(), isThere: true)
        let decision = TaskRule.decide(facts)
        #expect(decision.progress == Self.doneLater && decision.place != .none && !decision.isArchived)
    }

    @Test func aProgressIsWrittenWhereItDiffers() throws {
        let by = UUID()
        let full = TaskProgress(isCompleted: true, completionDate: "2026-03-30T09:40:00.000Z", completedBy: by)
        let written = full.fields(after: Self.open).map { "\($0.key) \($0.json)" }
        let date = "completionDate \"2026-03-30T09:40:00.000Z\""
        #expect(written == ["isCompleted true", date, "completedBy \"\(by.text)\""])
        #expect(Self.open.fields(after: full).map(\.json) == ["false", "null", "null"])
        #expect(full.fields(after: full).isEmpty)
        let fields = try JSONObject(Array("{\"title\":\"x\",\"isCompleted\":null,\"completionDate\":null}".utf8))
        #expect(TaskProgress(of: fields) == Self.open)
    }
}

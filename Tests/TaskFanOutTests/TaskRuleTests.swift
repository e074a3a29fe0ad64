import Essentials
import FoundationEssentials
import Model
import TestSupport
import Testing

@testable import TaskFanOut

/// The rule, as tables.
@Suite(.ownThreads) struct TaskRuleTests {
    private static let open = TaskProgress()
    private static let done = TaskProgress(isCompleted: true, completionDate: "2026-03-30T09:40:00.000Z")
    private static let doneLater = TaskProgress(isCompleted: true, completionDate: "2026-03-31T10:00:00.000Z")

    /// Master, copy, merge base, whether the copy was edited later, and the expected progress of both.
    @Test(arguments: [
        (open, open, open, true, open),
        // Only the copy changed; the edit order does not matter, because a new title does not concern the progress.
        (open, done, open, true, done), (open, done, open, false, done),
        (done, open, done, false, open),
        // Only the master changed.
        (done, open, open, true, done), (open, done, done, true, open),
        // Both changed equally.
        (done, done, open, true, done),
        // Both changed differently: the later edit wins.
        (done, doneLater, open, true, doneLater), (done, doneLater, open, false, done),
        (open, doneLater, done, true, doneLater), (open, doneLater, done, false, open),
    ])
    func changedProgressWins(
        _ master: TaskProgress, _ copy: TaskProgress, _ base: TaskProgress, _ isCopyLater: Bool,
        _ expected: TaskProgress
    ) {
        var facts = TaskFacts(master: .init(progress: master, editPosition: 10))
        facts.copy = .init(progress: copy, editPosition: isCopyLater ? 11 : 9)
        facts.base = base
        #expect(TaskRule.decide(facts).progress == expected)
    }

    @Test func masterWinsWithoutACopy() {
        var facts = TaskFacts(master: .init(progress: Self.done, editPosition: 10))
        #expect(TaskRule.decide(facts).progress == Self.done)
        facts.base = Self.open
        #expect(TaskRule.decide(facts).progress == Self.done)
    }

    private enum Team: CaseIterable { case none, missing, existing }
    private enum Person: CaseIterable { case none, missing, nonMember, member }

    /// Every state of team and assignee: the copy's realm, and the new references of the master.
    @Test func copyTargetDependsOnTeamAndAssignee() {
        let (team, person) = (UUID(), UUID())
        for teamIs in Team.allCases {
            for personIs in Person.allCases {
                var facts = TaskFacts(master: .init(progress: Self.open, editPosition: 10))
                if teamIs != .none { facts.team = .init(id: team, exists: teamIs == .existing) }
                if personIs != .none { facts.assignee = .init(id: person, exists: personIs != .missing) }
                facts.isMember = personIs == .member
                let keepsPerson = personIs == .member || personIs == .nonMember && teamIs != .existing
                let target: TaskDecision.CopyTarget =
                    teamIs == .existing ? .team(team) : keepsPerson ? .person(person) : .none
                let expected = TaskDecision(
                    progress: Self.open, team: teamIs == .existing ? team : nil, assignee: keepsPerson ? person : nil,
                    target: target, isArchived: false)
                #expect(TaskRule.decide(facts) == expected, "\(teamIs) \(personIs)")
            }
        }
    }

    /// Whether it is completed, past the retention of copies and of masters; whether it has a copy, and is archived.
    @Test(arguments: [
        (false, false, false, true, false), (true, false, false, true, false), (true, true, false, false, false),
        (true, true, true, false, true),
        // Completed long ago, and reopened.
        (false, true, true, true, false),
    ])
    func expiredCompletionRemovesCopyOrArchives(
        _ isDone: Bool, _ isCopyExpired: Bool, _ isMasterExpired: Bool, _ hasCopy: Bool, _ isArchived: Bool
    ) {
        var facts = TaskFacts(master: .init(progress: isDone ? Self.done : Self.open, editPosition: 10))
        facts.team = .init(id: UUID(), exists: true)
        (facts.isCopyExpired, facts.isMasterExpired) = (isCopyExpired, isMasterExpired)
        facts.base = Self.done
        let decision = TaskRule.decide(facts)
        #expect((decision.target != .none) == hasCopy && decision.isArchived == isArchived)
    }

    /// Completed long ago, and the copy now has another date.
    @Test func newCompletionIsNotExpired() {
        var facts = TaskFacts(master: .init(progress: Self.done, editPosition: 10))
        facts.copy = .init(progress: Self.doneLater, editPosition: 11)
        (facts.base, facts.isCopyExpired, facts.isMasterExpired) = (Self.done, true, true)
        facts.team = .init(id: UUID(), exists: true)
        let decision = TaskRule.decide(facts)
        #expect(decision.progress == Self.doneLater && decision.target != .none && !decision.isArchived)
    }

    @Test func changedProgressFieldsAreWritten() throws {
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

import Backends
import Essentials
import FoundationEssentials
import Model
import Testing

@testable import Catalogues

/// The assignment of people to catalogues, and of trees to catalogues.
@Suite struct AudienceRuleTests {
    private typealias Rule = AudienceRule
    private static let (c1, c2, c3) = (UUID(), UUID(), UUID())
    private static let (t1, t2, t3) = (UUID(), UUID(), UUID())

    @Test func correctAssignmentIsUnchanged() {
        let people = [Self.group(Self.t1, Self.c1), Self.group(Self.t2, Self.c2)]
        #expect(Rule.plan(people, catalogues: [Self.c1: Self.t1, Self.c2: Self.t2]).isEmpty)
    }

    @Test func newProjectIsWrittenOncePerAudience() {
        let plan = Rule.plan([Self.group(Self.t2, Self.c1, count: 50)], catalogues: [Self.c1: Self.t1])
        #expect(plan == Rule.Plan(changed: [Self.c1: Rule.Step(from: Self.t1, to: Self.t2)]))
    }

    @Test func personWithAnotherTreeLeaves() {
        let people = [Self.group(Self.t1, Self.c1, count: 2), Self.group(Self.t2, Self.c1)]
        let new = RealmContents.catalogueID(for: Self.t2, number: 0)
        #expect(
            Rule.plan(people, catalogues: [Self.c1: Self.t1])
                == Rule.Plan(created: [new: Self.t2], moved: [Self.share(Self.t2, Self.c1): new]))
    }

    /// Most of them get a project: the one who does not gets a new catalogue with the old content.
    @Test func largestShareKeepsCatalogue() {
        let people = [Self.group(Self.t2, Self.c1, count: 2), Self.group(Self.t1, Self.c1)]
        let new = RealmContents.catalogueID(for: Self.t1, number: 0)
        let plan = Rule.plan(people, catalogues: [Self.c1: Self.t1])
        #expect(plan.changed == [Self.c1: Rule.Step(from: Self.t1, to: Self.t2)])
        #expect(plan.created == [new: Self.t1] && plan.moved == [Self.share(Self.t1, Self.c1): new])
        // In one unit: she leaves in the transaction that changes the catalogue.
        #expect(plan.units().count == 1)
    }

    @Test func audiencesWithSameTreeAreMerged() {
        let people = [Self.group(Self.t3, Self.c1), Self.group(Self.t3, Self.c2, count: 2)]
        let plan = Rule.plan(people, catalogues: [Self.c1: Self.t1, Self.c2: Self.t2])
        #expect(plan.changed == [Self.c2: Rule.Step(from: Self.t2, to: Self.t3)])
        #expect(plan.moved == [Self.share(Self.t3, Self.c1): Self.c2] && plan.abandoned == [Self.c1])
    }

    @Test func personJoinsCatalogueWithTheirTree() {
        let people = [Self.group(Self.t2, Self.c1), Self.group(Self.t2, Self.c2)]
        let plan = Rule.plan(people, catalogues: [Self.c1: Self.t1, Self.c2: Self.t2])
        #expect(plan == Rule.Plan(moved: [Self.share(Self.t2, Self.c1): Self.c2], abandoned: [Self.c1]))
    }

    @Test func emptyCatalogueWithTreeIsReused() {
        let people = [Self.group(Self.t2, nil)]
        #expect(
            Rule.plan(people, catalogues: [Self.c1: Self.t2]) == Rule.Plan(moved: [Self.share(Self.t2, nil): Self.c1]))
    }

    /// The id of a catalogue that was created for a tree and has another one now is not reused.
    @Test func usedCatalogueIDIsNotReused() {
        let taken = RealmContents.catalogueID(for: Self.t1, number: 0)
        let people = [Self.group(Self.t2, taken), Self.group(Self.t1, nil)]
        let plan = Rule.plan(people, catalogues: [taken: Self.t2])
        #expect(plan.created == [RealmContents.catalogueID(for: Self.t1, number: 1): Self.t1])
    }

    /// Two catalogues change, and a person moves from each to the other: this must be one transaction.
    @Test func cataloguesThatExchangePeopleFormOneUnit() {
        let (ana, ben) = (Self.group(Self.t2, Self.c1), Self.group(Self.t1, Self.c2))
        let others = [(Self.t1, Self.c1), (Self.t2, Self.c2), (Self.t3, Self.c3)].map { Self.group($0, $1, count: 2) }
        let plan = Rule.plan([ana, ben] + others, catalogues: [Self.c1: UUID(), Self.c2: UUID(), Self.c3: UUID()])
        #expect(plan.changed.count == 3 && plan.moved == [ana.share: Self.c2, ben.share: Self.c1])
        let units = plan.units()
        #expect(Set(units.map { [$0.changed.count, $0.moved.count] }) == [[1, 0], [2, 2]])
    }

    // MARK: Reads during changes of the back end

    @Test func personReadBeforeChangeDefersStep() {
        let step = Rule.Step(from: Self.t1, to: Self.t2)
        let people = [
            Self.group(Self.t1, Self.c1, readAt: 10), Self.group(Self.t2, Self.c1, readAt: 20, changedAt: 20),
        ]
        let catalogues = [Self.c1: Self.t1]
        func steps(_ people: [Rule.Group], since: Int64 = 0) -> Rule.DeferrableSteps {
            Rule.deferrableSteps(people, catalogues: catalogues, since: Timestamp(millisecondsSinceEpoch: since))
        }
        #expect(steps(people) == Rule.DeferrableSteps(maybeLate: [step]))
        #expect(Rule.plan(people, catalogues: catalogues, deferred: [step]).isEmpty)
        // In the next run she was read after it: the project is his only, or hers too.
        var later = people
        later[0].readAt = Timestamp(millisecondsSinceEpoch: 30)
        #expect(steps(later, since: 25) == Rule.DeferrableSteps())
        later = [Self.group(Self.t2, Self.c1, count: 2, readAt: 30, changedAt: 20)]
        #expect(steps(later, since: 25) == Rule.DeferrableSteps())
        #expect(Rule.plan(later, catalogues: catalogues).changed == [Self.c1: step])
        // Or she is no longer read: the step is deferred for one run only.
        #expect(steps(people, since: 25) == Rule.DeferrableSteps())
    }

    /// An older version assigned it to her; her tree is unknown until she is read.
    @Test func unreadPeopleDeferStep() {
        let people = [
            Self.group(Self.t1, Self.c1, readAt: 15, hasUnread: true),
            Self.group(Self.t2, Self.c1, readAt: 20, changedAt: 20),
        ]
        let steps = Rule.deferrableSteps(
            people, catalogues: [Self.c1: Self.t1], since: Timestamp(millisecondsSinceEpoch: 10))
        #expect(steps.unread == [Rule.Step(from: Self.t1, to: Self.t2)])
    }

    private static func share(_ tree: UUID, _ catalogue: UUID?) -> Rule.Share {
        Rule.Share(catalogue: catalogue, tree: tree)
    }

    private static func group(
        _ tree: UUID, _ catalogue: UUID?, count: Int = 1, readAt: Int64 = 5, changedAt: Int64 = 5,
        hasUnread: Bool = false
    ) -> Rule.Group {
        Rule.Group(
            share: share(tree, catalogue), count: count, readAt: Timestamp(millisecondsSinceEpoch: readAt),
            changedAt: Timestamp(millisecondsSinceEpoch: changedAt), hasUnread: hasUnread)
    }
}

import Essentials
import FoundationEssentials
import Model

/// Assigns catalogues to people: people with the same reporting tree share one.
///
/// A catalogue gets the tree that most of its people have now, so that a new project is written once and most people
/// keep their catalogue; the others leave. Catalogues whose people now have the same tree are merged into the largest.
enum AudienceRule {
    /// People with the same catalogue and tree.
    struct Share: Hashable, Sendable {
        /// `nil` if none is assigned yet.
        let catalogue: UUID?
        /// The people's reporting tree.
        let tree: UUID
    }

    /// Statistics of a share's people, with a constant size.
    struct Group: Equatable, Sendable {
        let share: Share
        var count: Int
        /// The time of the last read of any of them, and of the first read with this tree.
        var readAt: Timestamp
        var changedAt: Timestamp
        /// Whether one of them was never read by this version: the stored tree was derived from an older version's
        /// data.
        var hasUnread: Bool
    }

    /// A change of a catalogue's tree.
    struct Step: Hashable, Sendable {
        let from: UUID
        let to: UUID
    }

    struct Plan: Equatable, Sendable {
        /// New catalogues with their trees.
        var created: [UUID: UUID] = [:]
        /// Catalogues that get another tree.
        var changed: [UUID: Step] = [:]
        /// Shares whose people get another catalogue.
        var moved: [Share: UUID] = [:]
        /// Catalogues without people.
        var abandoned: Set<UUID> = []

        var isEmpty: Bool { self == Plan() }
    }

    /// Steps that may be deferred, to avoid two catalogues that the next run would merge again.
    struct DeferrableSteps: Equatable, Sendable {
        /// Some people of a catalogue may have another tree only because they were read later, while the back end was
        /// changing: all people who were read since have it. Additive steps are deferred.
        var maybeLate: Set<Step> = []
        /// Other people of the catalogue were never read.
        var unread: Set<Step> = []
    }

    /// - Parameter since: The start of the last full comparison: trees that were first read before are not deferred,
    ///   even if people are no longer read.
    static func deferrableSteps(
        _ groups: [Group], catalogues: [UUID: UUID], since: Timestamp
    ) -> DeferrableSteps {
        /// The group that keeps the tree, by catalogue.
        var staying: [UUID: Group] = [:]
        for group in groups {
            guard let catalogue = group.share.catalogue, group.share.tree == catalogues[catalogue] else { continue }
            staying[catalogue] = group
        }
        var steps = DeferrableSteps()
        if staying.isEmpty { return steps }
        for group in groups where group.changedAt >= since {
            guard let stay = group.share.catalogue.flatMap({ staying[$0] }), stay.share != group.share else { continue }
            let step = Step(from: stay.share.tree, to: group.share.tree)
            if stay.hasUnread { steps.unread.insert(step) }
            if stay.readAt < group.changedAt { steps.maybeLate.insert(step) }
        }
        return steps
    }

    /// - Parameters:
    ///   - catalogues: The current tree of each catalogue.
    ///   - deferred: Steps that are not made yet.
    static func plan(_ groups: [Group], catalogues: [UUID: UUID], deferred: Set<Step> = []) -> Plan {
        let trees = groups.map { group in
            let tree = group.share.tree
            guard !deferred.isEmpty, let held = group.share.catalogue.flatMap({ catalogues[$0] }) else { return tree }
            return deferred.contains(Step(from: held, to: tree)) ? held : tree
        }
        var homes = homes(groups, trees, catalogues)
        var plan = Plan()
        for tree in trees where homes[tree] == nil {
            let catalogue = newCatalogue(for: tree, except: catalogues)
            homes[tree] = catalogue
            plan.created[catalogue] = tree
        }
        for (group, tree) in zip(groups, trees) {
            if let home = homes[tree], home != group.share.catalogue { plan.moved[group.share] = home }
        }
        plan.abandoned = Set(catalogues.keys)
        for (tree, catalogue) in homes {
            plan.abandoned.remove(catalogue)
            guard let held = catalogues[catalogue], held != tree else { continue }
            plan.changed[catalogue] = Step(from: held, to: tree)
        }
        return plan
    }

    /// Returns existing catalogues by their new tree.
    private static func homes(
        _ groups: [Group], _ trees: [UUID], _ catalogues: [UUID: UUID]
    ) -> [UUID: UUID] {
        struct Claim {
            let catalogue: UUID
            let tree: UUID
            let count: Int
            let isHeld: Bool

            func isBefore(_ other: Claim) -> Bool {
                if count != other.count { return count > other.count }
                if isHeld != other.isHeld { return isHeld }
                return catalogue != other.catalogue ? catalogue < other.catalogue : tree < other.tree
            }
        }
        var counts: [Share: Int] = [:]
        for (group, tree) in zip(groups, trees) {
            guard let catalogue = group.share.catalogue, catalogues[catalogue] != nil else { continue }
            counts[Share(catalogue: catalogue, tree: tree), default: 0] += group.count
        }
        // A catalogue that has the tree already is a candidate without people: it need not be written.
        let needed = Set(trees)
        for (catalogue, tree) in catalogues where needed.contains(tree) {
            counts[Share(catalogue: catalogue, tree: tree), default: 0] += 0
        }
        let claims = counts.compactMap { share, count in
            share.catalogue.map {
                Claim(catalogue: $0, tree: share.tree, count: count, isHeld: catalogues[$0] == share.tree)
            }
        }
        var homes: [UUID: UUID] = [:]
        var taken: Set<UUID> = []
        for claim in claims.sorted(by: { $0.isBefore($1) })
        where homes[claim.tree] == nil && taken.insert(claim.catalogue).inserted {
            homes[claim.tree] = claim.catalogue
        }
        return homes
    }

    private static func newCatalogue(for tree: UUID, except catalogues: [UUID: UUID]) -> UUID {
        var number = 0
        while true {
            let id = RealmContents.catalogueID(for: tree, number: number)
            if catalogues[id] == nil { return id }
            number += 1
        }
    }
}

extension AudienceRule.Plan {
    /// Changes that must be made in one transaction, so that no person has another person's nodes meanwhile: a changed
    /// catalogue with the people who leave and join it.
    struct Unit: Equatable, Sendable {
        var changed: [UUID: AudienceRule.Step] = [:]
        var moved: [AudienceRule.Share: UUID] = [:]
    }

    /// Returns the smallest units in a stable order.
    func units() -> [Unit] {
        var groups = JoinedCatalogues()
        for (share, target) in moved {
            // Catalogues without changes do not connect units.
            guard let source = share.catalogue, changed[source] != nil, changed[target] != nil else { continue }
            groups.join(source, target)
        }
        var units: [UUID: Unit] = [:]
        for (catalogue, step) in changed {
            units[groups.representative(of: catalogue), default: Unit()].changed[catalogue] = step
        }
        for (share, target) in moved {
            let source = share.catalogue.flatMap { changed[$0] == nil ? nil : $0 }
            let anchor = changed[target] != nil ? target : source ?? target
            units[groups.representative(of: anchor), default: Unit()].moved[share] = target
        }
        return units.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Disjoint sets of catalogues (union-find).
    private struct JoinedCatalogues {
        private var parents: [UUID: UUID] = [:]

        mutating func representative(of catalogue: UUID) -> UUID {
            var top = catalogue
            while let parent = parents[top] { top = parent }
            if top != catalogue { parents[catalogue] = top }
            return top
        }

        mutating func join(_ first: UUID, _ second: UUID) {
            let (first, second) = (representative(of: first), representative(of: second))
            if first != second { parents[max(first, second)] = min(first, second) }
        }
    }
}

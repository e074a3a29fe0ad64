import Essentials
import FoundationEssentials
import Model

/// Which catalogue each person has, and what each catalogue holds: people who may report on the same share one.
///
/// A catalogue goes on with the tree that most of its people have now, so that a new project is written into it once
/// and none of them gets another catalogue; the others leave. Catalogues whose people have come to the same tree become
/// one, the largest.
enum AudienceRule {
    /// Who has the same catalogue and may report on the same.
    struct Share: Hashable, Sendable {
        /// `nil`: none yet.
        let catalogue: UUID?
        /// What they may report on.
        let tree: UUID
    }

    /// What is known of a share's people: nothing here grows with their number.
    struct Group: Equatable, Sendable {
        let share: Share
        var count: Int
        /// When one of them was read last, and when one was first read so.
        var readAt: Timestamp
        var changedAt: Timestamp
        /// What an older version of Fieldpost gave one of them stands for what they may report on.
        var hasUnread: Bool
    }

    /// What becomes of what a catalogue holds.
    struct Step: Hashable, Sendable {
        let from: UUID
        let to: UUID
    }

    struct Plan: Equatable, Sendable {
        /// New catalogues, and their trees.
        var created: [UUID: UUID] = [:]
        /// Catalogues that hold another tree from now on.
        var changed: [UUID: Step] = [:]
        /// Shares whose people have another catalogue from now on.
        var moved: [Share: UUID] = [:]
        /// Catalogues that nobody has any more.
        var abandoned: Set<UUID> = []

        var isEmpty: Bool { self == Plan() }
    }

    /// Steps that can wait, instead of making two catalogues that are one again after the next run.
    struct Unsure: Equatable, Sendable {
        /// Some people of a catalogue may have made them only because they were read later than the others, while the
        /// back end was changing: nobody who was read since is without them. One that takes nothing away waits.
        var maybeLate: Set<Step> = []
        /// Others of the catalogue were never read.
        var unread: Set<Step> = []
    }

    /// - Parameter since: When the last full comparison began: what was first read before does not wait, whoever is
    ///   not read any more.
    static func unsure(_ groups: [Group], catalogues: [UUID: UUID], since: Timestamp) -> Unsure {
        /// What is known of those who stay, by catalogue.
        var staying: [UUID: Group] = [:]
        for group in groups {
            guard let catalogue = group.share.catalogue, group.share.tree == catalogues[catalogue] else { continue }
            staying[catalogue] = group
        }
        var unsure = Unsure()
        if staying.isEmpty { return unsure }
        for group in groups where group.changedAt >= since {
            guard let stay = group.share.catalogue.flatMap({ staying[$0] }), stay.share != group.share else { continue }
            let step = Step(from: stay.share.tree, to: group.share.tree)
            if stay.hasUnread { unsure.unread.insert(step) }
            if stay.readAt < group.changedAt { unsure.maybeLate.insert(step) }
        }
        return unsure
    }

    /// - Parameters:
    ///   - catalogues: What each holds.
    ///   - waiting: Steps that are not made yet.
    static func plan(_ groups: [Group], catalogues: [UUID: UUID], waiting: Set<Step> = []) -> Plan {
        let wanted = groups.map { group in
            let tree = group.share.tree
            guard !waiting.isEmpty, let held = group.share.catalogue.flatMap({ catalogues[$0] }) else { return tree }
            return waiting.contains(Step(from: held, to: tree)) ? held : tree
        }
        var homes = homes(groups, wanted, catalogues)
        var plan = Plan()
        for tree in wanted where homes[tree] == nil {
            let catalogue = newCatalogue(for: tree, beside: catalogues)
            homes[tree] = catalogue
            plan.created[catalogue] = tree
        }
        for (group, tree) in zip(groups, wanted) {
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

    /// The catalogues that there are, by the tree that they hold from now on.
    private static func homes(
        _ groups: [Group], _ wanted: [UUID], _ catalogues: [UUID: UUID]
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
        for (group, tree) in zip(groups, wanted) {
            guard let catalogue = group.share.catalogue, catalogues[catalogue] != nil else { continue }
            counts[Share(catalogue: catalogue, tree: tree), default: 0] += group.count
        }
        // Nobody in it is a claim too: what holds the tree already need not be written.
        let needed = Set(wanted)
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

    private static func newCatalogue(for tree: UUID, beside catalogues: [UUID: UUID]) -> UUID {
        var number = 0
        while true {
            let id = RealmContents.catalogueID(for: tree, number: number)
            if catalogues[id] == nil { return id }
            number += 1
        }
    }
}

extension AudienceRule.Plan {
    /// What has to happen in one transaction, so that nobody has what is not theirs in between: a catalogue that
    /// changes, who leaves it and who comes.
    struct Part: Equatable, Sendable {
        var changed: [UUID: AudienceRule.Step] = [:]
        var moved: [AudienceRule.Share: UUID] = [:]
    }

    /// The smallest such parts, in a stable order.
    func parts() -> [Part] {
        var groups = Groups()
        for (share, target) in moved {
            // A catalogue that stays as it is binds nobody together.
            guard let source = share.catalogue, changed[source] != nil, changed[target] != nil else { continue }
            groups.join(source, target)
        }
        var parts: [UUID: Part] = [:]
        for (catalogue, step) in changed { parts[groups.name(catalogue), default: Part()].changed[catalogue] = step }
        for (share, target) in moved {
            let source = share.catalogue.flatMap { changed[$0] == nil ? nil : $0 }
            let anchor = changed[target] != nil ? target : source ?? target
            parts[groups.name(anchor), default: Part()].moved[share] = target
        }
        return parts.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Sets of catalogues that are joined one pair after the other.
    private struct Groups {
        private var parents: [UUID: UUID] = [:]

        mutating func name(_ catalogue: UUID) -> UUID {
            var top = catalogue
            while let parent = parents[top] { top = parent }
            if top != catalogue { parents[catalogue] = top }
            return top
        }

        mutating func join(_ first: UUID, _ second: UUID) {
            let (first, second) = (name(first), name(second))
            if first != second { parents[max(first, second)] = min(first, second) }
        }
    }
}

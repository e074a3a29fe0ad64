import Essentials
import FoundationEssentials
import Model

/// Which catalogue each person has, and what each catalogue holds: people who may report on the same share one.
///
/// A catalogue goes on with the tree that most of its people have now, so that a new project is written into it once
/// and none of them gets another catalogue; the others leave. Catalogues whose people have come to the same tree become
/// one, the largest.
enum AudienceRule {
    struct Person: Equatable, Sendable {
        var email: String
        /// What the person may report on.
        var tree: UUID
        var catalogue: UUID?
        /// When that was read last, and when it was first read so.
        var readAt: Timestamp
        var changedAt: Timestamp

        /// What an older version of Fieldpost gave the person stands for what they may report on.
        var isUnread: Bool { readAt.millisecondsSinceEpoch < 0 }
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
        /// People with another catalogue from now on, by e-mail.
        var moved: [String: UUID] = [:]
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
    static func unsure(_ people: [Person], catalogues: [UUID: UUID], since: Timestamp) -> Unsure {
        var lastRead: [UUID: Timestamp] = [:]
        var unread: Set<UUID> = []
        var firstChange: [UUID: [UUID: Timestamp]] = [:]
        for person in people {
            guard let catalogue = person.catalogue, let tree = catalogues[catalogue] else { continue }
            if person.tree == tree {
                lastRead[catalogue] = max(lastRead[catalogue] ?? person.readAt, person.readAt)
                if person.isUnread { unread.insert(catalogue) }
            } else {
                let known = firstChange[catalogue]?[person.tree] ?? person.changedAt
                firstChange[catalogue, default: [:]][person.tree] = min(known, person.changedAt)
            }
        }
        var unsure = Unsure()
        for (catalogue, changes) in firstChange {
            guard let tree = catalogues[catalogue], let last = lastRead[catalogue] else { continue }
            for (wanted, first) in changes where first >= since {
                let step = Step(from: tree, to: wanted)
                if unread.contains(catalogue) { unsure.unread.insert(step) }
                if last < first { unsure.maybeLate.insert(step) }
            }
        }
        return unsure
    }

    /// - Parameters:
    ///   - catalogues: What each holds.
    ///   - waiting: Steps that are not made yet.
    static func plan(_ people: [Person], catalogues: [UUID: UUID], waiting: Set<Step> = []) -> Plan {
        let wanted = people.map { person in
            guard let tree = person.catalogue.flatMap({ catalogues[$0] }) else { return person.tree }
            return waiting.contains(Step(from: tree, to: person.tree)) ? tree : person.tree
        }
        var homes = homes(people, wanted, catalogues)
        var plan = Plan()
        for tree in Set(wanted).subtracting(homes.keys) {
            let catalogue = newCatalogue(for: tree, beside: catalogues)
            homes[tree] = catalogue
            plan.created[catalogue] = tree
        }
        for (person, tree) in zip(people, wanted) where homes[tree] != person.catalogue {
            plan.moved[person.email] = homes[tree]
        }
        for (tree, catalogue) in homes {
            guard let held = catalogues[catalogue], held != tree else { continue }
            plan.changed[catalogue] = Step(from: held, to: tree)
        }
        plan.abandoned = Set(catalogues.keys).subtracting(homes.values)
        return plan
    }

    /// The catalogues that there are, by the tree that they hold from now on.
    private static func homes(
        _ people: [Person], _ wanted: [UUID], _ catalogues: [UUID: UUID]
    ) -> [UUID: UUID] {
        struct Share: Hashable {
            let catalogue: UUID
            let tree: UUID
        }
        // Nobody in it is a share too: what holds the tree already need not be written.
        var counts = Dictionary(catalogues.map { (Share(catalogue: $0, tree: $1), 0) }) { first, _ in first }
        for (person, tree) in zip(people, wanted) {
            guard let catalogue = person.catalogue, catalogues[catalogue] != nil else { continue }
            counts[Share(catalogue: catalogue, tree: tree), default: 0] += 1
        }
        func isHeld(_ share: Share) -> Int { catalogues[share.catalogue] == share.tree ? 1 : 0 }
        let needed = Set(wanted)
        let shares = counts.filter { needed.contains($0.key.tree) }.sorted {
            ($1.value, isHeld($1.key), $0.key.catalogue, $0.key.tree)
                < ($0.value, isHeld($0.key), $1.key.catalogue, $1.key.tree)
        }
        var homes: [UUID: UUID] = [:]
        var taken: Set<UUID> = []
        for (share, _) in shares where homes[share.tree] == nil && taken.insert(share.catalogue).inserted {
            homes[share.tree] = share.catalogue
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
        var moved: [String: UUID] = [:]

        var count: Int { changed.count + moved.count }
    }

    /// The smallest such parts, in a stable order.
    ///
    /// - Parameter catalogues: Where the people who move are now, by e-mail.
    func parts(from catalogues: [String: UUID]) -> [Part] {
        var groups = Groups()
        for (email, target) in moved {
            // A catalogue that stays as it is binds nobody together.
            guard let source = catalogues[email], changed[source] != nil, changed[target] != nil else { continue }
            groups.join(source, target)
        }
        var parts: [UUID: Part] = [:]
        for (catalogue, step) in changed { parts[groups.name(catalogue), default: Part()].changed[catalogue] = step }
        for (email, target) in moved {
            let source = catalogues[email]
            let anchor = changed[target] != nil ? target : source.flatMap { changed[$0] == nil ? nil : $0 } ?? target
            parts[groups.name(anchor), default: Part()].moved[email] = target
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

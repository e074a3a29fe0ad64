import Essentials
import FoundationEssentials
import Model
import ObjectStore
import TestSupport
import Testing

@testable import KeyedWorker
@testable import ShareFanOut

/// The reference model of sharing: people's actions, applied immediately in commit order.
struct SharingModel {
    struct Pair: Hashable {
        let owner: Int
        let recipient: Int
    }

    struct Link: Hashable {
        let pair: Pair
        let item: SharingWorld.Item
    }

    /// Texts of items, by owner.
    private(set) var items: [Int: [SharingWorld.Item: String]] = [:]
    private(set) var links: Set<Link> = []
    /// Texts of deleted items, by owner.
    private(set) var deletedItems: [Int: [SharingWorld.Item: String]] = [:]
    /// Links that ended with their item, and return with it.
    private(set) var suspended: Set<Link> = []
    /// Pairs with a link since the last end of their share.
    private(set) var shared: Set<Pair> = []

    mutating func write(_ item: SharingWorld.Item, _ text: String, of owner: Int) {
        items[owner, default: [:]][item] = text
    }

    mutating func delete(_ item: SharingWorld.Item, of owner: Int) {
        deletedItems[owner, default: [:]][item] = items[owner]?.removeValue(forKey: item)
        let ended = links.filter { $0.pair.owner == owner && $0.item == item }
        links.subtract(ended)
        suspended.formUnion(ended)
    }

    mutating func restore(_ item: SharingWorld.Item, of owner: Int) {
        items[owner, default: [:]][item] = deletedItems[owner]?.removeValue(forKey: item)
        let restored = suspended.filter { $0.pair.owner == owner && $0.item == item }
        suspended.subtract(restored)
        links.formUnion(restored)
    }

    mutating func share(_ link: Link) {
        links.insert(link)
        suspended.remove(link)
        shared.insert(link.pair)
    }

    mutating func unshare(_ link: Link) {
        links.remove(link)
        suspended.remove(link)
    }

    mutating func end(_ pair: Pair) {
        links = links.filter { $0.pair != pair }
        suspended = suspended.filter { $0.pair != pair }
        shared.remove(pair)
    }

    /// Returns the expected copies of a pair.
    func copies(_ pair: Pair) -> [String: String] {
        var copies: [String: String] = [:]
        for link in links where link.pair == pair {
            guard let text = items[pair.owner]?[link.item] else { continue }
            copies["\(link.item.kind.rawValue)/\(link.item.id.text)"] = SharingWorld.json(link.item.kind, text)
        }
        return copies
    }
}

/// Random actions of people, and two handlers that process late, duplicate and reordered events, and crash.
struct SharingSimulation: ~Copyable {
    private struct PendingBatch {
        let batch: WriteBatch
        let inputs: [WorkItem<Never>]
        let dispositions: [Disposition<Never>]
    }

    var sharing: SharingWorld
    private var model = SharingModel()
    private var random: SplitMix64
    private var handlers = [ShareHandler(), ShareHandler()]
    private var pending: [PendingBatch?] = [nil, nil]
    private var events: [WorkItem<Never>] = []
    /// Few items, so that several people own the same one.
    private let pool: [SharingWorld.Item]
    private(set) var actionCounts: [Int: Int] = [:]

    init(seed: UInt64) throws {
        sharing = try SharingWorld(people: (0..<3).map { "person\($0)" })
        random = SplitMix64(seed: seed)
        pool = (0..<3).map { SharingWorld.Item(kind: $0 % 2 == 0 ? .note : .appointment, id: UUID()) }
    }

    mutating func step() throws {
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: try act()
        case 5..<8: try decide()
        default: try commit()
        }
    }

    // MARK: People

    private mutating func act() throws {
        let count = sharing.people.count
        let owner = Int.random(in: 0..<count, using: &random)
        let recipient = (owner + Int.random(in: 1..<count, using: &random)) % count
        let item = pool[Int.random(in: 0..<pool.count, using: &random)]
        let (pair, people) = (SharingModel.Pair(owner: owner, recipient: recipient), sharing.people)
        let link = SharingModel.Link(pair: pair, item: item)
        let action = Int.random(in: 0..<17, using: &random)
        actionCounts[action, default: 0] += 1
        switch action {
        case 0..<4: try write(item, of: owner)
        case 4..<10:
            try sharing.share(item, of: people[owner], with: people[recipient].id)
            model.share(link)
        case 10, 11:
            // Only an existing link can be deleted: one of a restored item returns later.
            let key = "SharedItem/\(SharedItem.id(of: item.id, with: people[recipient].id).text)"
            guard try sharing.links(people[owner])[key] != nil else { return }
            try sharing.unshare(item, of: people[owner], with: people[recipient].id)
            model.unshare(link)
        case 12, 13:
            // Only an existing copy can be removed.
            let key = "\(item.kind.rawValue)/\(item.id.text)"
            guard try isOpen(pair), try sharing.copies(people[owner], people[recipient])[key] != nil else { return }
            try sharing.remove(item, of: people[owner], by: people[recipient])
            model.unshare(link)
        case 14:
            guard try isOpen(pair) else { return }
            let enders = [people[owner], people[recipient], nil]
            try sharing.end(people[owner], people[recipient], by: enders[Int.random(in: 0..<3, using: &random)])
            model.end(pair)
        case 15: try delete(item, of: owner)
        default: try restore(item, of: owner)
        }
    }

    /// Whether the pair can open the share's realm.
    private mutating func isOpen(_ pair: SharingModel.Pair) throws -> Bool {
        let stored = try sharing.stored(SharingWorld.path(sharing.people[pair.owner], sharing.people[pair.recipient]))
        return stored.keys.contains { $0.hasPrefix("Share/") }
    }

    private mutating func write(_ item: SharingWorld.Item, of owner: Int) throws {
        // A deleted item is restored, not written.
        guard model.deletedItems[owner]?[item] == nil else { return }
        let text = "\(Int.random(in: 0..<1_000_000, using: &random))"
        try sharing.write(item, text, of: sharing.people[owner])
        model.write(item, text, of: owner)
    }

    private mutating func delete(_ item: SharingWorld.Item, of owner: Int) throws {
        guard model.items[owner]?[item] != nil, Int.random(in: 0..<3, using: &random) == 0 else { return }
        try sharing.delete(item.kind.kind, item.id, in: sharing.people[owner].path)
        model.delete(item, of: owner)
    }

    private mutating func restore(_ item: SharingWorld.Item, of owner: Int) throws {
        guard let text = model.deletedItems[owner]?[item] else { return }
        try sharing.write(item, text, of: sharing.people[owner])
        model.restore(item, of: owner)
    }

    // MARK: Services

    private mutating func decide() throws {
        events += try sharing.collect()
        let number = Int.random(in: 0..<handlers.count, using: &random)
        guard pending[number] == nil, !events.isEmpty else { return }
        events.shuffle(using: &random)
        let count = min(events.count, Int.random(in: 1...6, using: &random))
        let inputs = SharingWorld.merged(Array(events.prefix(count)))
        // Some events are delivered again later.
        let areRedelivered = Int.random(in: 0..<4, using: &random) == 0
        if !areRedelivered { events.removeFirst(count) }
        let (batch, dispositions) = try sharing.decide(inputs, by: &handlers[number])
        pending[number] = PendingBatch(batch: batch, inputs: inputs, dispositions: dispositions)
    }

    private mutating func commit() throws {
        let number = Int.random(in: 0..<handlers.count, using: &random)
        guard let work = pending[number] else { return }
        pending[number] = nil
        let crashes = Int.random(in: 0..<8, using: &random) == 0
        if crashes {
            handlers[number] = ShareHandler()
            events += work.inputs
        } else {
            events += try sharing.commit(work.batch, work.inputs, work.dispositions)
        }
    }

    // MARK: Checks

    /// Delivers all events. Then the copies equal the model's, and a republication changes nothing.
    mutating func finish() throws {
        for number in handlers.indices { if let work = pending[number] { events += work.inputs } }
        pending = [nil, nil]
        try sharing.settle(events)
        events = []
        try check()
        let before = try sharing.position()
        try sharing.settle(try sharing.collect(all: true))
        #expect(try sharing.position() == before)
    }

    private mutating func check() throws {
        try checkHistory()
        let people = sharing.people
        for owner in people.indices {
            for recipient in people.indices where recipient != owner {
                let pair = SharingModel.Pair(owner: owner, recipient: recipient)
                let expected = model.copies(pair)
                #expect(try sharing.copies(people[owner], people[recipient]) == expected, "\(owner) \(recipient)")
                let key = "Share/\(Share.id(of: people[owner].id, with: people[recipient].id).text)"
                let share = try sharing.stored(SharingWorld.path(people[owner], people[recipient]))[key]
                #expect(expected.isEmpty || share != nil)
                #expect(share == nil || model.shared.contains(pair))
                #expect(try sharing.areReferencesCurrent(people[owner], people[recipient]))
                for person in [owner, recipient] { #expect(try sharing.stored(people[person].path)[key] == share) }
            }
            let links = model.links.filter { $0.pair.owner == owner }.map { link in
                "SharedItem/\(SharedItem.id(of: link.item.id, with: people[link.pair.recipient].id).text)"
            }
            #expect(try Set(sharing.links(people[owner]).keys) == Set(links), "\(owner)")
            let items = (model.items[owner] ?? [:]).map { ("\($0.key.kind.rawValue)/\($0.key.id.text)", $0.value) }
            #expect(
                try sharing.stored(people[owner].path).keys.filter { $0.hasPrefix("Note/") || $0.hasPrefix("Appo") }
                    .sorted() == items.map(\.0).sorted())
        }
    }
}

extension SharingSimulation {
    /// Deleted objects are retained, existing ones have no `DeletedObject`, and shared ones have no `EndedShare`.
    private mutating func checkHistory() throws {
        for (owner, person) in sharing.people.enumerated() {
            let deleted = try sharing.deleted(person)
            for (item, text) in model.deletedItems[owner] ?? [:] {
                let content = try #require(deleted[item.id], "\(owner)")
                #expect((content.note?.title ?? content.appointment?.why) == text)
            }
            for link in model.suspended where link.pair.owner == owner {
                let id = SharedItem.id(of: link.item.id, with: sharing.people[link.pair.recipient].id)
                #expect(deleted[id]?.reason == .itemDeleted && deleted[id]?.sharedItem?.item == link.item.id)
            }
            for link in model.links where link.pair.owner == owner {
                let id = SharedItem.id(of: link.item.id, with: sharing.people[link.pair.recipient].id)
                #expect(deleted[id] == nil, "\(owner)")
            }
            for item in (model.items[owner] ?? [:]).keys { #expect(deleted[item.id] == nil) }
        }
        for (recipient, person) in sharing.people.enumerated() {
            let ended = try sharing.ended(person)
            #expect(ended.values.allSatisfy { $0.reason != .removed && $0.owner != person.id })
            for link in model.links where link.pair.recipient == recipient {
                guard model.items[link.pair.owner]?[link.item] != nil else { continue }
                let id = EndedShare.id(of: sharing.people[link.pair.owner].id, item: link.item.id)
                #expect(ended[id] == nil, "\(link.pair.owner) \(recipient)")
            }
        }
    }
}

@Suite(.ownThreads) struct SharingSimulationTests {
    @Test(arguments: Seeds.random(6, for: "sharing")) func copiesConvergeToTheModel(seed: UInt64) throws {
        var simulation = try SharingSimulation(seed: seed)
        for round in 0..<6 {
            for _ in 0..<120 { try simulation.step() }
            try simulation.finish()
            if round == 5 { #expect(simulation.actionCounts.count == 17, "seed \(seed)") }
        }
    }
}

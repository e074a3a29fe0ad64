import Essentials
import FoundationEssentials
import Model
import ObjectStore
import TestSupport
import Testing

@testable import KeyedWorker
@testable import ShareFanOut

/// Who sees what, told a second time: what people did is done at once, in the order in which it was committed.
struct SharingModel {
    struct Pair: Hashable {
        let owner: Int
        let recipient: Int
    }

    struct Link: Hashable {
        let pair: Pair
        let item: Sharing.Item
    }

    /// Texts of items, by owner.
    private(set) var items: [Int: [Sharing.Item: String]] = [:]
    private(set) var links: Set<Link> = []
    /// Pairs between whom something was shared since the last end.
    private(set) var shared: Set<Pair> = []

    mutating func write(_ item: Sharing.Item, _ text: String, of owner: Int) { items[owner, default: [:]][item] = text }

    mutating func delete(_ item: Sharing.Item, of owner: Int) {
        items[owner]?[item] = nil
        links = links.filter { $0.pair.owner != owner || $0.item != item }
    }

    mutating func share(_ link: Link) {
        links.insert(link)
        shared.insert(link.pair)
    }

    mutating func unshare(_ link: Link) { links.remove(link) }

    mutating func end(_ pair: Pair) {
        links = links.filter { $0.pair != pair }
        shared.remove(pair)
    }

    /// What somebody has of somebody else.
    func copies(_ pair: Pair) -> [String: String] {
        var copies: [String: String] = [:]
        for link in links where link.pair == pair {
            guard let text = items[pair.owner]?[link.item] else { continue }
            copies["\(link.item.kind.rawValue)/\(link.item.id.text)"] = Sharing.json(link.item.kind, text)
        }
        return copies
    }
}

/// People who do anything at any time, and two handlers that hear of it late, twice, in any order, or die.
struct SharingSimulation: ~Copyable {
    private struct Decided {
        let batch: WriteBatch
        let inputs: [WorkItem<Never>]
        let nexts: [Disposition<Never>]
    }

    var sharing: Sharing
    private var model = SharingModel()
    private var random: SplitMix64
    private var handlers = [ShareHandler(), ShareHandler()]
    private var decided: [Decided?] = [nil, nil]
    private var events: [WorkItem<Never>] = []
    /// Few, so that many people own the same.
    private let pool: [Sharing.Item]
    private(set) var didCount: [Int: Int] = [:]

    init(seed: UInt64) throws {
        sharing = try Sharing(people: (0..<3).map { "person\($0)" })
        random = SplitMix64(seed: seed)
        pool = (0..<3).map { Sharing.Item(kind: $0 % 2 == 0 ? .note : .appointment, id: UUID()) }
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
        let what = Int.random(in: 0..<16, using: &random)
        didCount[what, default: 0] += 1
        switch what {
        case 0..<4: try write(item, of: owner)
        case 4..<10:
            try sharing.share(item, of: people[owner], with: people[recipient].id)
            model.share(link)
        case 10, 11:
            try sharing.unshare(item, of: people[owner], with: people[recipient].id)
            model.unshare(link)
        case 12, 13:
            // One removes what one sees.
            let key = "\(item.kind.rawValue)/\(item.id.text)"
            guard try isOpen(pair), try sharing.copies(people[owner], people[recipient])[key] != nil else { return }
            try sharing.remove(item, of: people[owner], by: people[recipient])
            model.unshare(link)
        case 14:
            guard try isOpen(pair) else { return }
            try sharing.end(people[owner], people[recipient])
            model.end(pair)
        default: try delete(item, of: owner)
        }
    }

    /// Whether the two may open the share's realm.
    private mutating func isOpen(_ pair: SharingModel.Pair) throws -> Bool {
        let stored = try sharing.stored(Sharing.path(sharing.people[pair.owner], sharing.people[pair.recipient]))
        return stored.keys.contains { $0.hasPrefix("Share/") }
    }

    /// An id that was deleted is not used again.
    private var gone: Set<String> = []

    private mutating func write(_ item: Sharing.Item, of owner: Int) throws {
        guard !gone.contains("\(owner) \(item.id)") else { return }
        let text = "\(Int.random(in: 0..<1_000_000, using: &random))"
        try sharing.write(item, text, of: sharing.people[owner])
        model.write(item, text, of: owner)
    }

    private mutating func delete(_ item: Sharing.Item, of owner: Int) throws {
        guard model.items[owner]?[item] != nil, Int.random(in: 0..<3, using: &random) == 0 else { return }
        gone.insert("\(owner) \(item.id)")
        try sharing.delete(item.kind.kind, item.id, in: sharing.people[owner].path)
        model.delete(item, of: owner)
    }

    // MARK: Services

    private mutating func decide() throws {
        events += try sharing.collect()
        let number = Int.random(in: 0..<handlers.count, using: &random)
        guard decided[number] == nil, !events.isEmpty else { return }
        events.shuffle(using: &random)
        let count = min(events.count, Int.random(in: 1...6, using: &random))
        let taken = Sharing.merged(Array(events.prefix(count)))
        // Some come once more later.
        let areKept = Int.random(in: 0..<4, using: &random) == 0
        if !areKept { events.removeFirst(count) }
        let (batch, nexts) = try sharing.decide(taken, by: &handlers[number])
        decided[number] = Decided(batch: batch, inputs: taken, nexts: nexts)
    }

    private mutating func commit() throws {
        let number = Int.random(in: 0..<handlers.count, using: &random)
        guard let work = decided[number] else { return }
        decided[number] = nil
        let isDead = Int.random(in: 0..<8, using: &random) == 0
        if isDead {
            handlers[number] = ShareHandler()
            events += work.inputs
        } else {
            events += try sharing.commit(work.batch, work.inputs, work.nexts)
        }
    }

    // MARK: The end

    /// Everything is delivered; then all is as the model says, and publishing it again changes nothing.
    mutating func finish() throws {
        for number in handlers.indices { if let work = decided[number] { events += work.inputs } }
        decided = [nil, nil]
        try sharing.settle(events)
        events = []
        try check()
        let before = try sharing.position()
        try sharing.settle(try sharing.collect(all: true))
        #expect(try sharing.position() == before)
    }

    private mutating func check() throws {
        let people = sharing.people
        for owner in people.indices {
            for recipient in people.indices where recipient != owner {
                let pair = SharingModel.Pair(owner: owner, recipient: recipient)
                let expected = model.copies(pair)
                #expect(try sharing.copies(people[owner], people[recipient]) == expected, "\(owner) \(recipient)")
                let key = "Share/\(Share.id(of: people[owner].id, with: people[recipient].id).text)"
                let share = try sharing.stored(Sharing.path(people[owner], people[recipient]))[key]
                #expect(expected.isEmpty || share != nil)
                #expect(share == nil || model.shared.contains(pair))
                #expect(try sharing.isHeardOf(people[owner], people[recipient]))
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

@Suite(.ownThreads) struct SharingSimulationTests {
    @Test(arguments: Seeds.random(6, for: "sharing")) func atRestEverybodyHasWhatTheyAreToHave(seed: UInt64) throws {
        var simulation = try SharingSimulation(seed: seed)
        for round in 0..<6 {
            for _ in 0..<120 { try simulation.step() }
            try simulation.finish()
            if round == 5 { #expect(simulation.didCount.count == 16, "seed \(seed)") }
        }
    }
}

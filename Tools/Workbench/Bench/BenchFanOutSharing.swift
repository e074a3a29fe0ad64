import Algorithms
import Essentials
import FoundationEssentials
import Glibc
import Model
import ObjectStore
import Postgres

/// People who share an item with 100 others each.
struct BenchShares: ~Copyable {
    private struct Owner {
        let item: UUID
        let path: RealmPath
        let realm: Int32
        let shares: [UUID]
    }

    var world: BenchWorld
    private let owners: [Owner]
    private let links: [BenchWorld.Place]
    private var number = 0

    static let recipientCount = 100

    /// Writes what the owners write; the service is still to do its part.
    init(_ count: Int, on place: BenchPlace) throws {
        var world = try BenchWorld(on: place)
        var random = SplitMix64(seed: 1)
        let people = try world.letIn((0..<count + Self.recipientCount).map { "u\($0)@bench.example" })
        let realms = try world.realms(people.map { try .user($0.email) })
        let recipients = people.suffix(Self.recipientCount).map(\.id)
        var (owners, links): ([Owner], [BenchWorld.Place]) = ([], [])
        var written: [(key: ObjectKey, fields: String)] = []
        for person in people.prefix(count) {
            let path = try RealmPath.user(person.email)
            let owner = Owner(
                item: random.id(), path: path, realm: realms[path] ?? 0,
                shares: recipients.map { Share.id(of: person.id, with: $0) })
            owners.append(owner)
            for recipient in recipients {
                let key = ObjectKey(
                    realm: owner.realm, kind: .sharedItem, id: SharedItem.id(of: owner.item, with: recipient))
                links.append(BenchWorld.Place(path: path, key: key))
                written.append(
                    (
                        key,
                        "{\"kind\":\"Appointment\",\"item\":\"\(owner.item.text)\",\"recipient\":\"\(recipient.text)\"}"
                    ))
            }
        }
        try world.put(Self.places(owners).map { ($0.key, Self.fields(0)) } + written)
        (self.owners, self.links) = (owners, links)
        self.world = world
    }

    /// Of all items together.
    var copyCount: Int { owners.count * Self.recipientCount }

    private static func fields(_ number: Int) -> String {
        #"{"when":"2018-01-03T08:00:00.000Z","durationMinutes":30,"why":"Measuring \#(number)"}"#
    }

    private static func places(_ owners: [Owner]) -> [BenchWorld.Place] {
        owners.map { owner in
            BenchWorld.Place(
                path: owner.path, key: ObjectKey(realm: owner.realm, kind: .appointment, id: owner.item))
        }
    }

    /// Publishes who shares what, with whom; and waits for all copies.
    mutating func share() throws {
        try world.publish(Self.places(owners) + links, to: Topics.share)
        let deadline = ContinuousClock.now + .seconds(300)
        while try copiesThere() < copyCount {
            guard ContinuousClock.now < deadline else { throw BenchPlace.Missing(description: "copies are missing") }
            poll(nil, 0, 200)
        }
    }

    private mutating func copiesThere() throws -> Int {
        Int(
            try world.connection.run(
                """
                SELECT count(*) FROM store.object
                WHERE kind = \(Kind.appointment) AND realm_id <> ALL (\(owners.map(\.realm))) AND NOT deleted
                """)[0].decode(Int64.self))
    }

    /// Changes and publishes all items.
    mutating func edit() throws {
        number += 1
        let places = Self.places(owners)
        try world.put(places.map { ($0.key, Self.fields(number)) })
        try world.publish(places, to: Topics.share)
    }

    /// Writes the copies of one item after the other, made beforehand.
    mutating func writeAlone() throws -> Duration {
        number += 1
        let fields = try CanonicalJSON(Self.fields(number))
        var pipelines: [[Statement]] = []
        for owner in owners {
            let realms = try world.realms(owner.shares.map(RealmPath.share))
            var batch = WriteBatch(environment: world.environment)
            for realm in realms.values {
                batch.put(ObjectKey(realm: realm, kind: .appointment, id: owner.item), fields, decision: 0)
            }
            pipelines.append(batch.pipeline)
        }
        return try world.time(pipelines)
    }
}

/// An item with 100 recipients that is edited, and as many other people's.
struct BenchFanOutSharing {
    let options: BenchOptions

    private static let ownerCount = 100

    func run() throws {
        let service = Services.shareFanOut
        let place = try BenchPlace(options, for: service)
        defer { place.end() }
        var shares = try BenchShares(Self.ownerCount, on: place)
        try shares.world.begin(service)
        var worker = try BenchWorker(service, on: place)
        try shares.share()
        worker.end()
        var figures = BenchFigures()
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            figures.add("libpq alone", "rows/s", Double(shares.copyCount) / (try shares.writeAlone()).inSeconds)
            try shares.edit()
            let start = try shares.world.position()
            worker = try BenchWorker(service, on: place)
            let found = try worker.rate(from: start, count: shares.copyCount, in: &shares.world)
            worker.end()
            figures.add("share-fan-out, 1 worker", "rows/s", found.perSecond)
            figures.add("its own CPU", "µs/row", found.ownMicroseconds)
            figures.add("PostgreSQL's CPU", "µs/row", found.backendMicroseconds)
            print("  \(figures.latest)")
        }
        print(figures.table(title: "fanout: sharing, medians of \(options.rounds) rounds, on \(place.brokerName)"))
        print(
            BenchFigures.ratio(
                "share-fan-out / libpq alone",
                figures.median("share-fan-out, 1 worker") / figures.median("libpq alone"), aim: 0.6))
    }
}

import Algorithms
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// People who tell where they are, each in several teams.
struct BenchPeople: ~Copyable {
    private struct Person {
        let id: UUID
        let path: RealmPath
        /// The person's own.
        let realm: Int32
        let teams: [UUID]
    }

    var world: BenchWorld
    private var people: [Person] = []
    private var teamRealms: [RealmPath: Int32] = [:]
    private var number = 0

    private static let memberCount = 30
    /// As many as a worker takes at a time.
    private static let batchCount = 500

    /// - Parameter teamsEach: How many teams of 30 each is in.
    init(_ count: Int, teamsEach: Int, on place: BenchPlace) throws {
        var world = try BenchWorld(on: place)
        var random = SplitMix64(seed: 1)
        var teams = (0..<count * teamsEach / Self.memberCount).map { _ in (id: random.id(), members: [UUID]()) }
        let named = try world.letIn((0..<count).map { "u\($0)@bench.example" })
        let realms = try world.realms(named.map { try .user($0.email) })
        for (index, person) in named.enumerated() {
            // Each time with others.
            let own = (0..<teamsEach).map { (index / Self.memberCount + $0 * (7 + index % 13)) % teams.count }
            for team in Set(own) { teams[team].members.append(person.id) }
            let path = try RealmPath.user(person.email)
            people.append(
                Person(id: person.id, path: path, realm: realms[path] ?? 0, teams: Set(own).map { teams[$0].id }))
        }
        teamRealms = try world.realms(teams.map { .team($0.id) })
        try world.addTeams(teams)
        people.shuffle(using: &random)
        self.world = world
    }

    /// How many copies there are of all positions.
    var copyCount: Int { people.reduce(people.count) { $0 + $1.teams.count } }

    private func source(_ person: Person) -> ObjectKey { key(person, in: person.realm) }

    private func copies(_ person: Person) -> [ObjectKey] {
        ([world.manager] + person.teams.compactMap { teamRealms[.team($0)] }).map { key(person, in: $0) }
    }

    private func key(_ person: Person, in realm: Int32) -> ObjectKey {
        ObjectKey(realm: realm, kind: .location, id: person.id)
    }

    private func fields() -> String {
        #"{"latitude":34.05\#(number),"longitude":-118.2437,"accuracy":12,"timestamp":"2017-12-31T18:20:00.000Z"}"#
    }

    /// Everybody is somewhere else, and tells that.
    mutating func move() throws {
        number += 1
        let fields = fields()
        try world.put(people.map { (source($0), fields) })
        try world.publish(people.map { BenchWorld.Place(path: $0.path, key: source($0)) }, to: Topics.location)
    }

    /// Writes all copies with the statements that the service would run, made beforehand.
    mutating func moveAlone() throws -> Duration {
        number += 1
        let fields = try CanonicalJSON(fields())
        var pipelines: [[Statement]] = []
        for part in people.chunks(ofCount: Self.batchCount) {
            let objects = try world.load(part.flatMap { [source($0)] + copies($0) + named($0) })
            var batch = WriteBatch(environment: world.environment)
            for (decision, person) in part.enumerated() {
                for key in [source(person)] + copies(person) + named(person) {
                    batch.expect(key, at: objects[key]?.position ?? 0, decision: decision)
                }
                for key in copies(person) { batch.put(key, fields, decision: decision) }
            }
            pipelines.append(batch.pipeline)
        }
        return try world.time(pipelines)
    }

    /// Whom and what a person's copies depend on.
    private func named(_ person: Person) -> [ObjectKey] {
        let teams = person.teams.flatMap { team in
            [(Kind.team, team), (Kind.membership, Membership.id(of: person.id, in: team))]
        }
        return ([(.person, person.id)] + teams).map { ObjectKey(realm: world.common, kind: $0.0, id: $0.1) }
    }
}

/// One round of 10,000 positions, which everybody tells every 15 s.
struct BenchFanOutPositions {
    let options: BenchOptions

    private static let peopleCount = 10_000
    private static let interval = 15.0

    func run() throws {
        let service = Services.locationFanOut
        let place = try BenchPlace(options, for: service)
        defer { place.end() }
        var people = try BenchPeople(Self.peopleCount, teamsEach: 3, on: place)
        try people.world.begin(service)
        var figures = BenchFigures()
        // The first time there are no copies yet.
        _ = try measure(service, &people, place)
        for round in 1...options.rounds {
            print("round \(round) of \(options.rounds)")
            figures.add("libpq alone", "rows/s", Double(people.copyCount) / (try people.moveAlone()).inSeconds)
            let found = try measure(service, &people, place)
            figures.add("location-fan-out, 1 worker", "rows/s", found.perSecond)
            figures.add("its own CPU", "µs/row", found.ownMicroseconds)
            figures.add("PostgreSQL's CPU", "µs/row", found.backendMicroseconds)
            figures.add("10000 positions of people in three teams", "s", Double(people.copyCount) / found.perSecond)
            print("  \(figures.latest)")
        }
        print(figures.table(title: "fanout: positions, medians of \(options.rounds) rounds, on \(place.brokerName)"))
        print(
            BenchFigures.ratio(
                "location-fan-out / libpq alone",
                figures.median("location-fan-out, 1 worker") / figures.median("libpq alone"), aim: 0.6))
        print(
            BenchFigures.ratio(
                "seconds of the 15", figures.median("10000 positions of people in three teams"), aim: Self.interval,
                isAtMost: true))
    }

    private func measure(
        _ service: ServiceDescription, _ people: inout BenchPeople, _ place: BenchPlace
    ) throws -> BenchWorker.Rate {
        try people.move()
        let start = try people.world.position()
        let worker = try BenchWorker(service, on: place)
        defer { worker.end() }
        return try worker.rate(from: start, count: people.copyCount, in: &people.world)
    }
}

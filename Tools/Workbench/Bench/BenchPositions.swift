import Algorithms
import ArgumentParser
import Essentials
import FoundationEssentials
import Model
import ObjectStore
import Postgres

/// `location-fan-out`, compared with PostgreSQL that runs the same guarded statements.
struct BenchPositions: BenchScenario {
    static let configuration = CommandConfiguration(
        commandName: "positions",
        abstract: "Compare location-fan-out with the same statements alone.",
        discussion: """
            Each person is in three teams, of 30 people on average. All positions are changed and published; the \
            service writes the copies of managers and teams. The first fifth of the copies does not count.
            """)

    @OptionGroup var options: BenchOptions

    @Option(help: "Number of people; all of them move in each run.") var people = 10_000

    func validate() throws { try BenchOptions.check(people, in: 1_000...1_000_000, "--people") }

    static let targets = [
        BenchTarget(
            name: "location-fan-out / PostgreSQL alone", figure: "location-fan-out", reference: "PostgreSQL alone",
            limit: .atLeast(0.6)),
        BenchTarget(name: "seconds for all people", figure: "all people", limit: .atMost(15)),
    ]

    var installation: BenchInstallation.Configuration { BenchInstallation.Configuration() }

    func setUp(_ installation: BenchInstallation) async throws -> BenchPeople {
        try BenchPeople(installation, count: people)
    }

    func measure(
        _ people: BenchPeople, on installation: BenchInstallation, _ report: inout BenchReport
    ) async throws {
        try people.move()
        let rate = try await BenchRate.measure(
            Services.locationFanOut, count: people.copyCount, people.writer, on: installation)
        report.add("location-fan-out", "rows/s", rate.perSecond)
        report.add("all people", "s", Double(people.copyCount) / rate.perSecond)
        rate.addProcessorTimes(to: &report, per: "row")
        // After the service: before the first run there are no copies.
        report.add("PostgreSQL alone", "rows/s", try people.moveAlone())
    }
}

/// People who share their positions, each in several teams.
final class BenchPeople {
    private struct Person {
        let id: UUID
        let path: RealmPath
        /// The person's own.
        let realm: Int32
        let teams: [UUID]
    }

    let writer: BenchWriter
    private var people: [Person] = []
    private let teamRealms: [RealmPath: Int32]
    /// Number of changes so far; part of each position.
    private var revision = 0

    private static let memberCount = 30
    private static let teamsOfPerson = 3

    init(_ installation: BenchInstallation, count: Int) throws {
        writer = try BenchWriter(installation)
        var random = SplitMix64(seed: 1)
        let teams = (0..<count * Self.teamsOfPerson / Self.memberCount).map { _ in random.id() }
        let emails = (0..<count).map { "p\($0)@bench.example" }
        let ids = try writer.register(emails)
        let realms = try writer.realms(emails.map { try .user($0) })
        teamRealms = try writer.realms(teams.map { .team($0) })
        for (index, (email, id)) in zip(emails, ids).enumerated() {
            // The members of a person's teams differ.
            let own = (0..<Self.teamsOfPerson).map { number in
                let first = index * Self.teamsOfPerson / Self.memberCount
                return teams[(first + number * (7 + index % 13)) % teams.count]
            }
            let path = try RealmPath.user(email)
            people.append(Person(id: id, path: path, realm: realms[path] ?? 0, teams: own))
        }
        people.shuffle(using: &random)
        let writer = writer
        try writer.write(teams.map(writer.team))
        try writer.write(people.flatMap { person in person.teams.map { writer.membership(of: person.id, in: $0) } })
        try writer.begin(Services.locationFanOut)
    }

    /// Number of copies of all positions.
    var copyCount: Int { people.reduce(people.count) { $0 + $1.teams.count } }

    private func source(_ person: Person) -> ObjectKey { key(person, in: person.realm) }

    private func copies(_ person: Person) -> [ObjectKey] {
        ([writer.manager] + person.teams.compactMap { teamRealms[.team($0)] }).map { key(person, in: $0) }
    }

    private func key(_ person: Person, in realm: Int32) -> ObjectKey {
        ObjectKey(realm: realm, kind: .location, id: person.id)
    }

    private func fields() -> String {
        #"{"latitude":34.05\#(revision),"longitude":-118.2437,"accuracy":12,"timestamp":"2017-12-31T18:20:00.000Z"}"#
    }

    /// Changes and publishes every position.
    func move() throws {
        revision += 1
        try writer.write(people.map { (source($0), fields()) })
        try writer.publish(
            people.map { BenchWriter.Source(path: $0.path, key: source($0)) }, to: Topics.location)
    }

    /// Measures the service's statements for every copy, which are prepared before.
    ///
    /// - Returns: Rows per second.
    func moveAlone() throws -> Double {
        revision += 1
        let fields = try CanonicalJSON(fields())
        var pipelines: [[Statement]] = []
        for page in people.chunks(ofCount: BenchWriter.batchCount) {
            let objects = try writer.load(page.flatMap { [source($0)] + copies($0) + references($0) })
            var batch = WriteBatch(environment: writer.environment)
            for (decision, person) in page.enumerated() {
                for key in [source(person)] + copies(person) + references(person) {
                    batch.expect(key, at: objects[key]?.position ?? 0, decision: decision)
                }
                for key in copies(person) { batch.put(key, fields, decision: decision) }
            }
            pipelines.append(batch.pipeline)
        }
        return try writer.rate(of: pipelines, count: copyCount)
    }

    private func references(_ person: Person) -> [ObjectKey] {
        let teams = person.teams.flatMap { team in
            [(Kind.team, team), (Kind.membership, Membership.id(of: person.id, in: team))]
        }
        return ([(.person, person.id)] + teams).map { ObjectKey(realm: writer.common, kind: $0.0, id: $0.1) }
    }
}

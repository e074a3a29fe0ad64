import Access
import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import LocalCluster
import Model
import ObjectStore
import Postgres

/// From a manager's device to a member's, and from the member's to the manager's, against from one device to another
/// of the same person.
struct BenchFanOutLive {
    let rounds: Int

    private static let perSecond = 100
    private static let count = 600
    private static let settledMax = Duration.seconds(30)

    private struct Clocks {
        let notes = BenchClock()
        let tasks = BenchClock()
        let completions = BenchClock()
    }

    func run() async throws {
        let people = ["manager", "member"].map { BenchCluster.person("\($0)@bench.example") }
        var figures = BenchFigures()
        try await BenchCluster.with(
            services: [.relay, .gateway, LocalCluster.Part(Services.taskFanOut)], people: people
        ) { bench in
            let (team, member) = try await Self.makeTeam(bench)
            let clocks = Clocks()
            let (opened, opening) = AsyncStream.makeStream(of: Int.self)
            let followers = [0, 1].map { person in
                Task { try await Self.follow(bench, person, clocks) { opening.yield(person) } }
            }
            defer { for follower in followers { follower.cancel() } }
            var open = Set<Int>()
            for await person in opened {
                open.insert(person)
                if open.count == followers.count { break }
            }
            var notes = try BenchSender(bench, person: 1)
            var tasks = try BenchSender(bench, person: 0, in: .manager)
            var completions = try BenchSender(bench, person: 1, in: .team(team))
            for round in 1...rounds {
                print("round \(round) of \(rounds)")
                let pressure = BenchPressure.now()
                try await notes.send(Self.count, perSecond: Self.perSecond, clocks.notes) { number in
                    Mutation(
                        operation: .put, kind: .note, id: UUID(),
                        fields: Array("{\"title\":\"Note \(number)\",\"body\":\"\"}".utf8))
                }
                try await clocks.notes.settled(within: Self.settledMax)
                let ids = (0..<Self.count).map { _ in UUID() }
                try await tasks.send(Self.count, perSecond: Self.perSecond, clocks.tasks) { number in
                    Mutation(
                        operation: .put, kind: .fieldTask, id: ids[(number - 1) % Self.count],
                        fields: Array(
                            "{\"title\":\"T\(number)\",\"team\":\"\(team.text)\",\"assignee\":\"\(member.text)\"}".utf8)
                    )
                }
                try await clocks.tasks.settled(within: Self.settledMax)
                try await completions.send(Self.count, perSecond: Self.perSecond, clocks.completions) { number in
                    Mutation(
                        operation: .patch, kind: .fieldTask, id: ids[(number - 1) % Self.count],
                        fields: Array("{\"isCompleted\":true,\"completedBy\":\"\(member.text)\"}".utf8))
                }
                try await clocks.completions.settled(within: Self.settledMax)
                pressure.add(to: &figures)
                add(clocks.notes.take(), "line on another device of the person", &figures)
                add(clocks.tasks.take(), "manager's task on a member's device", &figures)
                add(clocks.completions.take(), "member's completion on a manager's device", &figures)
                print("  \(figures.latest)")
            }
        }
        print(figures.table(title: "fanout: live, medians of \(rounds) rounds, on \(BenchCluster.place)"))
        for name in ["manager's task on a member's device", "member's completion on a manager's device"] {
            for (percent, aim) in [(50, 3.0), (99, 4.0)] {
                let peer = figures.median("line on another device of the person, p\(percent)")
                print(
                    BenchFigures.ratio(
                        "\(name) / another device, p\(percent)", figures.median("\(name), p\(percent)") / peer,
                        aim: aim, isAtMost: true))
            }
        }
    }

    private func add(_ times: [Duration], _ name: String, _ figures: inout BenchFigures) {
        let percentiles = Percentiles(times)
        for percent in [50, 99] {
            figures.add("\(name), p\(percent)", "ms", (percentiles[percent]?.inSeconds ?? .nan) * 1_000)
        }
    }

    /// Makes the first person a manager, and a team of the second one.
    private static func makeTeam(_ bench: BenchCluster) async throws -> (team: UUID, member: UUID) {
        let (emails, environment, team) = (bench.people.map(\.email), bench.environment, UUID())
        let member = try await bench.pool.run { connection in
            try Registration.register(emails, in: environment, on: &connection)
            let found = try People.objects(of: emails, in: environment, on: &connection)
            let ids = Dictionary(uniqueKeysWithValues: found.map { ($0, $1) })
            var directory = RealmDirectory()
            guard let manager = ids[emails[0]], let member = ids[emails[1]],
                let common = try directory.id(of: .common, in: environment, create: true, on: &connection)
            else { throw BenchPlace.Missing(description: "the people were not registered") }
            func key(_ kind: Kind, _ id: UUID) -> ObjectKey { ObjectKey(realm: common, kind: kind, id: id) }
            var batch = WriteBatch(environment: environment)
            batch.put(key(.person, manager), try CanonicalJSON(#"{"name":"M","role":"manager"}"#), decision: 0)
            batch.put(key(.team, team), try CanonicalJSON(#"{"name":"Team"}"#), decision: 0, isEdit: true)
            batch.put(
                key(.membership, Membership.id(of: member, in: team)),
                try CanonicalJSON("{\"person\":\"\(member.text)\",\"team\":\"\(team.text)\"}"), decision: 0,
                isEdit: true
            )
            _ = try batch.commit(on: &connection)
            _ = try directory.ids(of: [.manager, .team(team)], in: environment, create: true, on: &connection)
            return member
        }
        return (team, member)
    }

    /// A device of one of the two: it reads its stream until it is cancelled.
    private static func follow(
        _ bench: BenchCluster, _ person: Int, _ clocks: Clocks, opened: () -> Void
    ) async throws {
        for try await line in try await bench.gateway.sync(
            token: bench.tokens[person], body: GatewayClient.firstSyncBody(isLive: true))
        {
            let now = ContinuousClock.now
            switch try SyncLine.read(line) {
            case .checkpoint: opened()
            case .objects(let realm, _, let list):
                for change in list {
                    guard let fields = change.object?.fields else { continue }
                    if change.id.kind == .note { clocks.notes.arrived(change.id.id, at: now) }
                    guard change.id.kind == .fieldTask else { continue }
                    if realm != .manager {
                        clocks.tasks.arrived(change.id.id, at: now)
                    } else if (try? JSONObject(fields))?.isTrue("isCompleted") == true {
                        clocks.completions.arrived(change.id.id, at: now)
                    }
                }
            case .open, .closed, .keepalive, nil: break
            }
        }
    }
}

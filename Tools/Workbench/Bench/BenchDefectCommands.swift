import BackendConnections
import Essentials
import FoundationEssentials
import LocalCluster
import Model
import ObjectStore
import Postgres
import Secrets

/// People's commands about as many defects, against what the calls in flight allow.
struct BenchDefectCommands {
    let rounds: Int
    /// Milliseconds that Compass takes for each answer.
    let latency: Int

    private static let inFlight = 64
    private static let people = 200
    private static let commands = 3_000

    func run() async throws {
        print("commands: loading \(Self.commands) defects")
        let bench = try await BenchTracker(
            people: Self.people, defects: Self.commands, service: .defectSubmitter,
            ["FIELDPOST_DEFECTS_INFLIGHT_MAX": "\(Self.inFlight)"])
        var figures = BenchFigures()
        do {
            try await bench.storeLogins()
            try await bench.setLatency(latency)
            // Each of the people logs in for the first.
            _ = try await bench.carryOut(Self.people, round: 0)
            for round in 1...rounds {
                print("commands: round \(round) of \(rounds)")
                let before = try await bench.requestCount()
                let time = try await bench.carryOut(Self.commands, round: round)
                let calls = Double(try await bench.requestCount() - before) / Double(Self.commands)
                figures.add("commands", "a second", Double(Self.commands) / time.inSeconds)
                figures.add("requests of a command", "", calls)
                figures.add(
                    "what \(Self.inFlight) in flight allow", "a second",
                    Double(Self.inFlight) * 1_000 / (calls * Double(max(latency, 1))))
            }
        } catch {
            await bench.stop()
            throw error
        }
        await bench.stop()
        print(
            figures.table(
                title:
                    "commands about defects, \(latency) ms an answer; medians of \(rounds) rounds, on "
                    + BenchCluster.place))
        let share = figures.median("commands") / figures.median("what \(Self.inFlight) in flight allow")
        print(BenchFigures.ratio("of \(Self.inFlight) in flight / mean latency", share, aim: 0.8))
    }
}

extension BenchTracker {
    private static let carryingMax = Duration.seconds(300)

    /// Everybody's own login, which is known to be good.
    func storeLogins() async throws {
        let (people, environment) = (people, environment)
        let secrets = try SecretBox([cluster.home.secretKeys])
        try await pool.run { connection in
            let realms = try Self.realms(of: people, in: environment, on: &connection)
            var batch = WriteBatch(environment: environment)
            let account = try CanonicalJSON(encoding: DefectAccount(status: .good, user: nil, storedAt: .now()))
            for (person, realm) in zip(people, realms) {
                let key = ObjectKey(
                    realm: realm, kind: .defectAccount, id: StableID.uuid("account", person))
                batch.put(key, account, decision: 0)
                let sealed = try secrets.seal(
                    DemoLogin.password, at: SecretContext.personalDefectLogin(environment, realm: realm))
                let own = OwnDefectLogin(user: person, sealed: Bytea(sealed))
                for statement in own.save(of: realm, in: environment, decision: 0) { batch.also(statement) }
            }
            _ = try batch.commit(on: &connection)
        }
    }

    /// So many defects are changed by as many commands.
    ///
    /// - Returns: How long it took, from when they were handed in.
    func carryOut(_ count: Int, round: Int) async throws -> Duration {
        let (people, environment) = (people, environment)
        try await pool.run { connection in
            let realms = try Self.realms(of: people, in: environment, on: &connection)
            var batch = WriteBatch(environment: environment)
            for number in 1...count {
                let key = ObjectKey(
                    realm: realms[number % realms.count], kind: .defectCommand,
                    id: StableID.uuid("command", "\(round) \(number)"))
                let command = DefectCommand(
                    operation: .modify, record: Self.record(number),
                    fields: ["Note_Entry": "round \(round)"], submitRequested: true)
                batch.put(key, try CanonicalJSON(encoding: command), decision: 0, isEdit: true)
            }
            _ = try batch.commit(on: &connection)
        }
        let start = ContinuousClock.now
        while try await waitingCount() > 0 {
            guard .now - start < Self.carryingMax else {
                throw BenchPlace.Missing(description: "\(count) commands were not done within \(Self.carryingMax)")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        return .now - start
    }

    /// Commands that are not at their end.
    ///
    /// - Throws: `BenchPlace.Missing` when one ended otherwise than done.
    private func waitingCount() async throws -> Int64 {
        let environment = environment
        let (waiting, failed): (Int64, Int64) = try await pool.run { connection in
            try connection.run(
                """
                SELECT count(*) FILTER (WHERE fields->>'status' = 'waiting'),
                    count(*) FILTER (WHERE fields->>'status' NOT IN ('waiting', 'done'))
                FROM realm.object
                WHERE environment_id = \(environment.rawValue) AND kind = \(Kind.defectCommand.rawValue)
                """)[0].decode(Int64.self, Int64.self)
        }
        if failed > 0 { throw BenchPlace.Missing(description: "\(failed) commands were not done") }
        return waiting
    }

    private static func realms(
        of people: [String], in environment: EnvironmentID, on connection: inout Connection
    ) throws -> [Int32] {
        var directory = RealmDirectory()
        let paths = try people.map { try RealmPath.user($0) }
        let ids = try directory.ids(of: paths, in: environment, create: false, on: &connection)
        return paths.compactMap { ids[$0] }
    }
}

import Access
import BackendConnections
import BackendProtocol
import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import KeyedWorker
import LocalCluster
import Model
import ObjectStore
import Postgres
import Tenants

/// One seed of `converge`: an environment, its people's random work, and the comparison afterwards.
struct ConvergeCourse: Sendable {
    let seed: UInt64
    let peopleCount: Int
    let stepCount: Int
    let settleMax: Duration
    let stage: ScenarioStage

    private var name: String { "seed-\(seed)" }

    /// - Returns: The differences after convergence.
    func run() async throws -> [String] {
        let people = (0..<peopleCount).map { Organisation.Person("person\($0)@\(name).example") }
        let players = try await patiently { () async throws -> (EnvironmentID, [FieldworkPlay.Player]) in
            let environment = try await setup.addEnvironment(people)
            let tokens = try await DeviceTokens(stage.identity, environment: name, issuer: environment.issuer)
            return (environment.id, try await self.players(people, in: environment.id, tokens))
        }
        return try await Device.whileRunning(players.1.map(\.device)) { try await play(players.1, in: players.0) }
    }

    private var setup: DemoSetup {
        DemoSetup(pool: stage.pool, environmentName: name, identity: stage.identity, backend: nil)
    }

    private func patiently<Success: Sendable>(_ body: () async throws -> Success) async throws -> Success {
        try await retrying(until: .now + settleMax, body)
    }

    // MARK: Set-up

    /// The first two people are managers.
    private func players(
        _ people: [Organisation.Person], in environment: EnvironmentID, _ tokens: DeviceTokens
    ) async throws -> [FieldworkPlay.Player] {
        try await setup.invite(people, to: environment)
        let ids = try await setup.objects(of: people, in: environment)
        try await stage.pool.run { connection in
            try DemoSetup.give(ids.prefix(2).map { ($0, Role.manager) }, in: environment, on: &connection)
        }
        let granted = try await tokens.tokens(for: people)
        return try zip(people, granted).enumerated().map { index, item in
            let device = try Device(
                person: item.0, gateway: stage.gateway, tokens: tokens, token: item.1, clientID: UUID())
            return FieldworkPlay.Player(id: ids[index], device: device, isManager: index < 2)
        }
    }

    /// Deletes a `Person`, or restores it, as an integration does.
    private func toggle(_ person: UUID, in environment: EnvironmentID) async throws {
        try await stage.pool.run { connection in
            var directory = RealmDirectory()
            guard let common = try directory.id(of: .common, in: environment, create: true, on: &connection) else {
                return
            }
            let key = ObjectKey(realm: common, kind: .person, id: person)
            let there = try RealmObject.byKey(try connection.run(RealmObject.load([key], in: environment)))[key]
            var batch = WriteBatch(environment: environment)
            batch.expect(key, at: there?.position ?? 0, decision: 0)
            if there?.fields == nil {
                batch.put(key, try CanonicalJSON(encoding: ["name": person.text]), decision: 0, isEdit: true)
            } else {
                batch.delete(key, decision: 0, isEdit: true)
            }
            _ = try batch.commit(on: &connection)
        }
    }

    // MARK: Work and convergence

    private func play(_ players: [FieldworkPlay.Player], in environment: EnvironmentID) async throws -> [String] {
        var play = FieldworkPlay(players: players, seed: seed)
        for number in 0..<stepCount {
            if let person = try await play.step() {
                try await patiently { () async throws -> Void in try await toggle(person, in: environment) }
            }
            // Devices receive some results before the next step.
            if number % 4 == 0 { try await Task.sleep(for: .milliseconds(20)) }
        }
        for player in players { await player.device.comeBack() }
        var history = FieldworkHistory()
        var position = try await converge(players, &history, in: environment)
        guard position.differences.isEmpty else { return position.differences }
        guard position.position >= 0 else {
            return try await ["the environment did not converge within \(settleMax)"] + pending(in: environment)
        }
        // Republished events must not change anything: workers decide by the current state.
        let asked = environment
        try await patiently { () async throws -> Void in
            try await stage.pool.run { connection in
                for topic in Self.topics { try connection.run(Republish.request(topic.name, in: asked)) }
            }
        }
        let before = position.position
        position = try await converge(players, &history, in: environment)
        if position.position != before {
            position.differences.append("republishing changed the position from \(before) to \(position.position)")
            position.differences += try await pending(in: environment)
            position.differences += try await written(after: before, in: environment)
        }
        print("seed \(seed): \(history.acceptedCount) mutations accepted, refused: \(history.rejectedCounts)")
        return position.differences
    }

    private static let topics = [Topics.task, Topics.team, Topics.location, Topics.share]
    /// Number of consecutive polls without pending work or differences. It takes longer than a group needs to detect a
    /// killed member (6 s), whose partitions are not read meanwhile.
    private static let quietPollCount = 20

    /// Waits until the environment is quiescent.
    ///
    /// - Returns: Its position then, and the differences.
    private func converge(
        _ players: [FieldworkPlay.Player], _ history: inout FieldworkHistory, in environment: EnvironmentID
    ) async throws -> (position: Int64, differences: [String]) {
        let deadline = ContinuousClock.now + settleMax
        var (last, count) = (Int64(-1), 0)
        while true {
            for player in players { history.take(await player.device.takeUpdates().answers, of: player.id) }
            let known = history
            let found = try await patiently { () async throws -> (Int64, [String]) in
                try await (position(of: environment), self.differences(players, known, in: environment))
            }
            // A position that does not change while work is pending does not count.
            count = found.0 >= 0 && found.0 == last && found.1.isEmpty ? count + 1 : 0
            last = found.0
            if count >= Self.quietPollCount || ContinuousClock.now >= deadline { return found }
            try await Task.sleep(for: .milliseconds(400))
        }
    }

    /// The environment's position; -1 while work is pending.
    private func position(of environment: EnvironmentID) async throws -> Int64 {
        try await stage.pool.run { connection in
            let rows = try connection.run(
                """
                SELECT e.position,
                    EXISTS (SELECT FROM pipeline.parked p WHERE p.environment_id = e.id AND NOT p.is_dead)
                    OR EXISTS (SELECT FROM realm.republish r WHERE r.environment_id = e.id)
                    OR EXISTS (SELECT FROM realm.relay r WHERE r.environment_id = e.id AND r.position < e.position)
                FROM realm.environment e WHERE e.id = \(environment.rawValue)
                """)
            let (position, isBusy) = try rows[0].decode(Int64.self, Bool.self)
            return isBusy ? -1 : position
        }
    }

    /// The pending work of an environment.
    private func pending(in environment: EnvironmentID) async throws -> [String] {
        try await stage.pool.run { connection in
            try connection.run(
                """
                SELECT 'deferred in ' || group_name || ': ' || key || ', ' || reason || ', due ' || next_at - now()
                FROM pipeline.parked WHERE environment_id = \(environment.rawValue) AND NOT is_dead
                UNION ALL
                SELECT 'to be republished: ' || topic FROM realm.republish
                WHERE environment_id = \(environment.rawValue)
                UNION ALL
                SELECT 'published up to ' || r.position || ' of ' || e.position
                FROM realm.environment e JOIN realm.relay r ON r.environment_id = e.id AND r.position < e.position
                WHERE e.id = \(environment.rawValue)
                """
            ).decode(String.self)
        }
    }

    /// Objects whose last write is after a position.
    private func written(after position: Int64, in environment: EnvironmentID) async throws -> [String] {
        try await stage.pool.run { connection in
            try connection.run(
                """
                SELECT 'written: ' || r.path || '/' || o.kind || '/' || o.id || ' ' || o.fields || ' ' || o.deleted
                FROM realm.object o JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                WHERE o.environment_id = \(environment.rawValue) AND o.position > \(position)
                ORDER BY o.position LIMIT 10
                """
            ).decode(String.self)
        }
    }

    private func differences(
        _ players: [FieldworkPlay.Player], _ history: FieldworkHistory, in environment: EnvironmentID
    ) async throws -> [String] {
        let snapshot = try await stage.pool.run { try FieldworkSnapshot.read(environment, on: &$0) }
        let reading = FieldworkReading(snapshot)
        var differences = reading.differences() + snapshot.dead.sorted() + history.differences(snapshot)
        for player in players {
            let waitingCount = await player.device.waitingCount
            if waitingCount > 0 {
                differences.append("\(player.device.person.email) has \(waitingCount) mutations without a response")
            }
            differences += reading.differences(of: player.id, device: await player.device.copy.contents)
            differences += history.differences(of: player, opened: await player.device.opened)
        }
        return differences
    }
}

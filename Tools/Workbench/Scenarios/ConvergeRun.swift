import DeviceClient
import Essentials
import FoundationEssentials
import KeyedWorker
import KindSchema
import LocalCluster
import Model
import ObjectStore
import Postgres

/// One seed of `converge`: an environment, its people's random work, and the comparison afterwards.
struct ConvergeRun: Sendable {
    let seed: UInt64
    let peopleCount: Int
    let stepCount: Int
    let settleMax: Duration
    let stage: ScenarioStage
    /// The gateways of the devices; `nil`: the cluster's first one.
    var gateways: [GatewayClient]?
    /// Time after two steps.
    var pause = Duration.milliseconds(20)
    /// The positions of the environment that a failover lost. Accepted mutations at these need not be kept.
    var lostPositions: @Sendable (EnvironmentID) -> Range<Int64> = { _ in 0..<0 }

    private var name: String { "seed-\(seed)" }
    private var kinds: RandomKinds { RandomKinds(seed: seed) }

    /// - Returns: The differences after convergence.
    func run() async throws -> [String] {
        let people = (0..<peopleCount).map { Organisation.Person("person\($0)@\(name).example") }
        let players = try await patiently { () async throws -> (EnvironmentID, [FieldworkPlay.Player]) in
            let environment = try await setup.addEnvironment(people)
            let tokens = try await DeviceTokens(stage.identity, environment: name, issuer: environment.issuer)
            return (environment.id, try await self.players(people, in: environment.id, tokens))
        }
        try await apply(version: 1, to: players.0)
        return try await Device.whileRunning(players.1.map(\.device)) { try await play(players.1, in: players.0) }
    }

    private var setup: DemoSetup { stage.setup(name) }

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
        return try people.enumerated().map { index, person in
            FieldworkPlay.Player(
                id: ids[index], device: try device(index, of: person, tokens, token: granted[index]),
                isManager: index < 2)
        }
    }

    /// Every second device has an SDK of PowerSync.
    private func device(
        _ index: Int, of person: Organisation.Person, _ tokens: DeviceTokens, token: String
    ) throws -> any FieldworkDevice {
        let gateways = gateways ?? [stage.gateway]
        let gateway = gateways[index / 2 % gateways.count]
        guard index % 2 == 1 else {
            return try Device(person: person, gateway: gateway, tokens: tokens, token: token, clientID: UUID())
        }
        return try PowerSyncDevice(
            person: person, gateway: gateway, tokens: tokens, token: token, clientID: UUID(),
            seed: seed &* 1_000 &+ UInt64(index))
    }

    /// Makes a version of the random schema file the environment's newest one, as `fieldpost schema apply` does.
    private func apply(version: Int, to environment: EnvironmentID) async throws {
        let file = Array(kinds.file(version).utf8)
        try await patiently { () async throws -> Void in
            try await stage.pool.run { connection in
                let application = try KindApplication(try SchemaValue(file), to: environment, on: &connection)
                // The commit of a lost connection may have succeeded.
                if application.isSame { return }
                _ = try application.commit(by: "converge", on: &connection) { _ in [] }
            }
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
        var play = FieldworkPlay(players: players, kinds: kinds, seed: seed)
        for number in 0..<stepCount {
            if number == stepCount / 2 {
                play.version = RandomKinds.versionCount
                try await apply(version: play.version, to: environment)
            }
            if let person = try await play.step() {
                try await patiently { () async throws -> Void in try await toggle(person, in: environment) }
            }
            // Devices receive some results before the next step.
            if number % 2 == 0 { try await Task.sleep(for: pause) }
        }
        for player in players { await player.device.goOnline() }
        var history = FieldworkHistory(kinds)
        let (before, found) = try await converge(players, &history, in: environment)
        guard found.isEmpty else { return found + before.pending.map { "pending: \($0)" } }
        guard before.pending.isEmpty else {
            return ["the environment did not converge within \(settleMax)"] + before.pending
        }
        let differences = try await republish(from: before, players, &history, in: environment)
        print("seed \(seed): \(history.acceptedCount) mutations accepted, refused: \(history.rejectedCounts)")
        print("seed \(seed): \(history.ownKinds)")
        var counts = PowerSyncDevice.Counts()
        for case let device as PowerSyncDevice in players.map(\.device) { counts += await device.counts }
        print("seed \(seed): PowerSync: \(counts)")
        return differences
    }

    /// Requests all events again. They must not change anything: workers decide by the current state.
    ///
    /// A deleted person whose device logs in again returns, which changes the environment: the next attempt counts.
    ///
    /// - Returns: The differences.
    private func republish(
        from state: EnvironmentSnapshot, _ players: [FieldworkPlay.Player], _ history: inout FieldworkHistory,
        in environment: EnvironmentID
    ) async throws -> [String] {
        var before = state
        while true {
            try await patiently { () async throws -> Void in
                try await stage.pool.run { connection in
                    for topic in Self.topics { try connection.run(Republish.request(topic.name, in: environment)) }
                }
            }
            let (after, differences) = try await converge(players, &history, in: environment)
            guard after.pending.isEmpty else {
                return differences + ["the environment did not converge after republishing"] + after.pending
            }
            if after.position == before.position || !differences.isEmpty { return differences }
            if Self.people(after).isSubset(of: Self.people(before)) {
                let change = "republishing changed the position from \(before.position) to \(after.position)"
                return try await [change] + written(after: before.position, in: environment)
            }
            before = after
        }
    }

    private static func people(_ snapshot: EnvironmentSnapshot) -> Set<UUID> {
        Set(snapshot.objects(.person, in: .common).keys)
    }

    private static let topics = [Topics.task, Topics.team, Topics.location, Topics.share]
    /// Number of consecutive polls without pending work or differences. It takes longer than a group needs to detect a
    /// killed member (6 s), whose partitions are not read meanwhile.
    private static let quietPollCount = 20

    /// Waits until the environment is quiescent.
    ///
    /// - Returns: Its state then, and the differences.
    private func converge(
        _ players: [FieldworkPlay.Player], _ history: inout FieldworkHistory, in environment: EnvironmentID
    ) async throws -> (EnvironmentSnapshot, [String]) {
        let deadline = ContinuousClock.now + settleMax
        var (last, count) = (Int64?.none, 0)
        while true {
            for player in players { history.take(await player.device.takeAnswers(), of: player) }
            let snapshot = try await patiently {
                try await stage.pool.run { try EnvironmentSnapshot.read(environment, on: &$0) }
            }
            history.exclude(lostPositions(environment))
            let differences = await differences(players, history, snapshot)
            // A position that does not change while work is pending does not count.
            let position = snapshot.pending.isEmpty ? snapshot.position : nil
            count = position != nil && position == last && differences.isEmpty ? count + 1 : 0
            last = position
            if count >= Self.quietPollCount || ContinuousClock.now >= deadline { return (snapshot, differences) }
            try await Task.sleep(for: .milliseconds(400))
        }
    }

    /// Objects whose last write is after a position.
    private func written(after position: Int64, in environment: EnvironmentID) async throws -> [String] {
        try await stage.pool.run { connection in
            try connection.run(
                """
                SELECT 'written: ' || r.path || '/' || o.kind || '/' || o.id
                    || coalesce(' ' || o.fields::text, ' deleted')
                FROM realm.object o JOIN realm.realm r ON r.environment_id = o.environment_id AND r.id = o.realm_id
                WHERE o.environment_id = \(environment.rawValue) AND o.position > \(position)
                ORDER BY o.position LIMIT 10
                """
            ).decode(String.self)
        }
    }

    private func differences(
        _ players: [FieldworkPlay.Player], _ history: FieldworkHistory, _ snapshot: EnvironmentSnapshot
    ) async -> [String] {
        let reading = FieldworkReading(snapshot)
        var differences = reading.differences() + snapshot.dead.sorted() + history.differences(snapshot)
        for player in players {
            differences += await player.device.violations
            let waitingCount = await player.device.waitingCount
            if waitingCount > 0 {
                differences.append("\(player.device.person.email) has \(waitingCount) mutations without a response")
            }
            differences += reading.differences(of: player.id, device: await player.device.received)
            differences += history.differences(of: player, opened: await player.device.opened)
        }
        return differences
    }
}

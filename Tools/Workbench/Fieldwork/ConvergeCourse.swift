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

/// One seed: an environment, its people at work, and what is to be seen afterwards.
struct ConvergeCourse: Sendable {
    let seed: UInt64
    let peopleCount: Int
    let stepCount: Int
    let settleMax: Duration
    let cluster: LocalCluster
    let client: Client
    let pool: Pool

    private var name: String { "seed-\(seed)" }

    /// - Returns: What differs at rest.
    func run() async throws -> [String] {
        let identity = IdentitySandbox(client: client, url: cluster.identityURL)
        let (issuer, keys) = try await patiently { () async throws -> (String, String) in
            let found = try await identity.issuer(below: name)
            return (found.issuer, found.keys)
        }
        let environment = try await patiently { () async throws -> EnvironmentID in
            try await addEnvironment(issuer, keys)
        }
        let tokens = try await patiently { () async throws -> DeviceTokens in
            try await DeviceTokens(identity, environment: name, issuer: issuer)
        }
        let players = try await patiently { () async throws -> [FieldworkPlay.Player] in
            try await self.players(in: environment, tokens)
        }
        return try await Device.whileRunning(players.map(\.device)) { try await play(players, in: environment) }
    }

    // MARK: Before

    private func addEnvironment(_ issuer: String, _ keys: String) async throws -> EnvironmentID {
        let name = name
        return try await pool.run { connection in
            if let there = try EnvironmentStore.load(name, on: &connection)?.id { return there }
            var environment = StoredEnvironment(name: name)
            environment.domains = ["\(name).example"]
            (environment.issuer, environment.audience, environment.jwksURL) = (issuer, DemoSetup.audience, keys)
            environment.backend = StoredEnvironment.noBackend
            try connection.run(EnvironmentStore.save(environment))
            guard let id = try EnvironmentStore.load(name, on: &connection)?.id else {
                throw DemoProblem("the environment \(name) was not stored")
            }
            return id
        }
    }

    /// The first two people are managers.
    private func players(
        in environment: EnvironmentID, _ tokens: DeviceTokens
    ) async throws -> [FieldworkPlay.Player] {
        let emails = (0..<peopleCount).map { "person\($0)@\(name).example" }
        let ids = try await pool.run { connection in
            try Registration.register(emails, in: environment, on: &connection)
            let ids = Dictionary(
                uniqueKeysWithValues: try People.objects(of: emails, in: environment, on: &connection).map { ($0, $1) })
            let managers = emails.prefix(2).compactMap { ids[$0] }.map { ($0, Role.manager) }
            try DemoSetup.give(managers, in: environment, on: &connection)
            return ids
        }
        let people = emails.map { email in
            Organisation.Person(
                id: email, name: email, email: email, active: nil, personWorkAgreementExternalId: "", companyCode: "",
                businessPartnerUuid: UUID())
        }
        let granted = try await tokens.tokens(for: people)
        let gateway = GatewayClient(client: client, url: cluster.gatewayURL)
        return try zip(people, granted).enumerated().map { index, item in
            guard let id = ids[item.0.email] else { throw DemoProblem("\(item.0.email) was not registered") }
            return FieldworkPlay.Player(
                id: id,
                device: try Device(
                    person: item.0, gateway: gateway, tokens: tokens, token: item.1, clientID: UUID()),
                isManager: index < 2)
        }
    }

    /// Deletes a `Person`, or makes them again, as a program that knows who works here does.
    private func turn(_ person: UUID, in environment: EnvironmentID) async throws {
        try await pool.run { connection in
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

    // MARK: Work, and rest

    private func play(_ players: [FieldworkPlay.Player], in environment: EnvironmentID) async throws -> [String] {
        var play = FieldworkPlay(players: players, seed: seed)
        for number in 0..<stepCount {
            if let person = try await play.step() {
                try await patiently { () async throws -> Void in try await turn(person, in: environment) }
            }
            // People are not that fast: what was done is sometimes seen before the next thing is.
            if number % 4 == 0 { try await Task.sleep(for: .milliseconds(20)) }
        }
        for player in players { await player.device.comeBack() }
        var history = FieldworkHistory()
        var position = try await comeToRest(players, &history, in: environment)
        guard position.differences.isEmpty else { return position.differences }
        guard position.position >= 0 else {
            return try await ["it is not at rest after \(settleMax)"] + onItsWay(in: environment)
        }
        // Everything is published once more: whoever decides from what is there has nothing to write.
        let asked = environment
        try await patiently { () async throws -> Void in
            try await pool.run { connection in
                for topic in Self.topics { try connection.run(Republish.ask(topic.name, in: asked)) }
            }
        }
        let before = position.position
        position = try await comeToRest(players, &history, in: environment)
        if position.position != before {
            position.differences.append("published again, it went from \(before) to \(position.position)")
            position.differences += try await onItsWay(in: environment)
            position.differences += try await written(after: before, in: environment)
        }
        print("seed \(seed): \(history.acceptedCount) mutations accepted, refused: \(history.rejectedCounts)")
        return position.differences
    }

    private static let topics = [Topics.task, Topics.team, Topics.location, Topics.share]
    /// So many looks one after the other find nothing to do, and no difference: longer than it takes a group to notice
    /// that a member was killed (6 s), whose partitions nobody reads until then.
    private static let restCount = 20

    /// Waits until nothing happens any more.
    ///
    /// - Returns: Where the environment is then, and what differs.
    private func comeToRest(
        _ players: [FieldworkPlay.Player], _ history: inout FieldworkHistory, in environment: EnvironmentID
    ) async throws -> (position: Int64, differences: [String]) {
        let deadline = ContinuousClock.now + settleMax
        var (last, count) = (Int64(-1), 0)
        while true {
            for player in players { history.take(await player.device.takeNews().answers, of: player.id) }
            let known = history
            let found = try await patiently { () async throws -> (Int64, [String]) in
                try await (position(of: environment), self.differences(players, known, in: environment))
            }
            // What is on its way for long is no rest.
            count = found.0 >= 0 && found.0 == last && found.1.isEmpty ? count + 1 : 0
            last = found.0
            if count >= Self.restCount || ContinuousClock.now >= deadline { return found }
            try await Task.sleep(for: .milliseconds(400))
        }
    }

    /// Where the environment is; -1 while something is on its way.
    private func position(of environment: EnvironmentID) async throws -> Int64 {
        try await pool.run { connection in
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

    /// What keeps an environment from being at rest.
    private func onItsWay(in environment: EnvironmentID) async throws -> [String] {
        try await pool.run { connection in
            try connection.run(
                """
                SELECT 'parked in ' || group_name || ': ' || key || ', ' || reason || ', due ' || next_at - now()
                FROM pipeline.parked WHERE environment_id = \(environment.rawValue) AND NOT is_dead
                UNION ALL
                SELECT 'to be published again: ' || topic FROM realm.republish
                WHERE environment_id = \(environment.rawValue)
                UNION ALL
                SELECT 'published up to ' || r.position || ' of ' || e.position
                FROM realm.environment e JOIN realm.relay r ON r.environment_id = e.id AND r.position < e.position
                WHERE e.id = \(environment.rawValue)
                """
            ).decode(String.self)
        }
    }

    /// What was written since, as far as it was not written again.
    private func written(after position: Int64, in environment: EnvironmentID) async throws -> [String] {
        try await pool.run { connection in
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
        let snapshot = try await pool.run { try FieldworkSnapshot.read(environment, on: &$0) }
        let reading = FieldworkReading(snapshot)
        var differences = reading.differences() + snapshot.dead.sorted() + history.differences(snapshot)
        for player in players {
            let waitingCount = await player.device.waitingCount
            if waitingCount > 0 {
                differences.append("\(player.device.person.email) waits for \(waitingCount) answers")
            }
            differences += reading.differences(of: player.id, device: await player.device.copy.contents)
            differences += history.differences(of: player, opened: await player.device.opened)
        }
        return differences
    }

    /// Does it again while something is away.
    private func patiently<Success: Sendable>(_ body: () async throws -> Success) async throws -> Success {
        let deadline = ContinuousClock.now + settleMax
        while true {
            do { return try await body() } catch {
                guard ContinuousClock.now < deadline, DemoRun.mayPass(error) else { throw error }
                try await Task.sleep(for: .milliseconds(300))
            }
        }
    }
}

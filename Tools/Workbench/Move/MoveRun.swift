import BackendConnections
import Essentials
import Foundation
import HTTPClient
import LocalCluster
import Model
import Postgres
import TenantMigration

/// Two installations, and one environment that goes from one to the other.
struct MoveRun: Sendable {
    let objectCount: Int
    let deviceCount: Int
    let answerCount: Int
    let pause: Duration
    let cutCount: Int
    let seed: UInt64

    private static let environment = "move"
    /// What an entry needs from a device to the back end and back.
    private static let services = LocalCluster.Part.wayOfAnEntry + [.poller]
    private static let secretsOfNew = Data(repeating: 9, count: 32).base64EncodedString()
    /// What the back end takes for an answer, so that entries are on their way when the environment is held.
    private static let switches = #"{"latencyMs":100}"#
    private static let readyMax = Duration.seconds(900)
    private static let endMax = Duration.seconds(3_600)
    private static let settleMax = Duration.seconds(90)
    /// So long nothing is moved, for the pauses that there are always.
    private static let quietTime = Duration.seconds(10)

    func run() async throws -> MoveReport {
        var options = LocalCluster.Options.quick
        options.services = Self.services
        // The entries are some years old.
        options.variables[.poller]?["FIELDPOST_POLLER_ENTRY_DAYS"] = "3660"
        let old = try await LocalCluster("move-old", options)
        do {
            (options.hasOthers, options.secretKeys) = (false, Self.secretsOfNew)
            let new = try await LocalCluster("move-new", options)
            do {
                let report = try await run(from: old, to: new)
                if !report.differences.isEmpty { await tell(of: old, new) }
                // The seed's entries have no lines of their status logs, and no pointers of the change log.
                for cluster in [old, new] { try await cluster.expectConsistent(except: ["statuses", "changes"]) }
                await new.stop()
                await old.stop()
                return report
            } catch {
                await tell(of: old, new)
                await new.stop()
                throw error
            }
        } catch {
            await old.stop()
            throw error
        }
    }

    private func tell(of old: LocalCluster, _ new: LocalCluster) async {
        for (name, cluster) in [("old", old), ("new", new)] {
            print("=== the \(name) place")
            await cluster.tell(of: Self.services)
        }
    }

    private func run(from old: LocalCluster, to new: LocalCluster) async throws -> MoveReport {
        var configuration = Client.Configuration()
        configuration.connectionsPerHostMax = max(100, deviceCount * 3)
        let client = Client(configuration: configuration)
        defer { client.shutDown() }
        let pools = (
            old: try Pool(old.conninfo, size: 2, limits: MoveStore.limits),
            new: try Pool(new.conninfo, size: 2, limits: MoveStore.limits)
        )
        defer {
            pools.old.stop()
            pools.new.stop()
        }
        let console = DemoConsole()
        let backend = SandboxSAP(client: client, url: old.sapURL)
        let identity = IdentitySandbox(client: client, url: old.identityURL)
        let organisation = backend.placed(
            GeneratedOrganisation.make(people: deviceCount, seed: seed), in: Self.environment)
        let setup = DemoSetup(
            pool: pools.old, environmentName: Self.environment, identity: identity, backend: backend)
        try await backend.load(organisation)
        let environment = try await setup.addEnvironment(organisation.people)
        // Its password is sealed with the keys of the old place.
        try await old.runCommand([
            "environment", "edit", Self.environment, "--backend-password-from", LocalCluster.passwordVariable,
        ])
        try await setup.invite(organisation.people, to: environment.id)
        console.say("\(deviceCount) people are invited; \(objectCount) objects are written")
        let seed = MoveSeed(environment: environment.id, objectCount: objectCount, answerCount: answerCount)
        try await pools.old.run { try seed.write(on: &$0) }
        try await self.wait("the people's realms are filled", within: Self.readyMax) {
            try await setup.initializedCount(of: organisation.people, in: environment.id) == organisation.people.count
        }
        _ = try await backend.setSwitches(Self.switches)
        let tokens = try await DeviceTokens(identity, environment: Self.environment, issuer: environment.issuer)
        let fleet = try await MoveFleet(
            organisation, pause: pause, gateway: GatewayClient(client: client, url: old.gatewayURL), tokens: tokens)
        let course = MoveCourse(
            name: Self.environment, environment: environment.id, objectCount: objectCount, cutCount: cutCount,
            old: .init(cluster: old, pool: pools.old), new: .init(cluster: new, pool: pools.new), fleet: fleet,
            console: console)
        var report = MoveReport()
        let working = Task { try await fleet.work() }
        defer { working.cancel() }
        let answered: [Int64]
        do {
            try await wait("entries of all devices are released", within: Self.readyMax) {
                fleet.tally.now.statuses[.released, default: 0] >= 2 * deviceCount
            }
            _ = await fleet.takePauses()
            try await Task.sleep(for: Self.quietTime)
            report.pausesBefore = await fleet.takePauses()
            answered = try await course.move(&report)
        } catch {
            for line in await fleet.troubles() { console.say(line) }
            throw error
        }
        fleet.end()
        console.say("the devices write nothing new; \(fleet.tally.now.line)")
        let works = try await finish(working, fleet, console)
        let here = try await pools.new.run { try MoveStore.find(Self.environment, on: &$0)?.environment }
        guard let here else { throw ClusterFailure("there is no environment at the new place") }
        try await MoveJudge.compareObjects(environment.id, at: pools.old, here, at: pools.new, &report)
        report.countCopied()
        let judge = MoveJudge(
            reader: RealmReader(pool: pools.new, environment: here), backend: backend,
            gateway: GatewayClient(client: client, url: new.gatewayURL), tokens: tokens)
        try await judge.compare(works, settle: Self.settleMax, &report)
        try await judge.compareAnswers(works, answeredAtOld: answered, &report)
        return report
    }

    /// Waits until all that was begun is finished.
    private func finish(
        _ working: Task<[MoveFleet.Work], any Error>, _ fleet: MoveFleet, _ console: DemoConsole
    ) async throws -> [MoveFleet.Work] {
        let late = Task {
            try await Task.sleep(for: Self.endMax)
            for line in await fleet.troubles() { console.say(line) }
            working.cancel()
        }
        defer { late.cancel() }
        return try await working.value
    }

    private func wait(
        _ what: String, within: Duration, until condition: () async throws -> Bool
    ) async throws {
        let deadline = ContinuousClock.now + within
        while try await !condition() {
            guard .now < deadline else { throw ClusterFailure("not within \(within): \(what)") }
            try await Task.sleep(for: .milliseconds(200))
        }
    }
}

import ArgumentParser
import DeviceClient
import Essentials
import Foundation
import LocalCluster
import Model
import Postgres
import Synchronization
import TenantMigration

/// `workbench move`: an environment moves between two installations while its devices work.
struct MoveCommand: ScenarioCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Move an environment while its devices work, and compare.",
        discussion: """
            Starts two installations with one back end and one identity provider. Devices write entries all the time; \
            the environment is exported, imported, cut over and activated as operators do it, and the devices follow \
            the redirect. Afterwards the moved tables, the devices, the responses to mutations and the back end's \
            records are compared. The exit status is 1 if they differ.
            """)

    @Option(help: "Number of objects in addition to the devices'.") var objects = 100_000
    @Option(help: "Number of devices.") var devices = 20
    @Option(help: "Stored responses of former devices. (default: --objects / 10)")
    var responses: Int?
    @Option(help: "Time between two entries of a device, in milliseconds.") var pause = 2_000
    @Option(help: "Number of times that the stream is cut and resumed.") var cuts = 0
    @Option(help: "Seed of the organisation.") var seed: UInt64 = 1
    @OptionGroup var output: ScenarioOptions

    private static let environment = "move"
    private static let services = LocalCluster.Part.entryServices + [.poller]
    private static let newSecretKeys = Data(repeating: 9, count: 32).base64EncodedString()
    /// Latency of the back end, so that entries are in flight at the cut-over.
    private static let switches = #"{"latencyMs":100}"#
    private static let readyMax = Duration.seconds(900)
    private static let endMax = Duration.seconds(3_600)
    private static let settleMax = Duration.seconds(90)
    /// Time before the move, for the pauses that devices always have.
    private static let quietTime = Duration.seconds(10)
    /// Number of repetitions of the organisation's weeks.
    private static let repetitionCount = 16
    /// Parts of `fieldpost check` that differ by design: the seed's entries have no status log and no change log.
    private static let unchecked: Set = ["statuses", "changes"]

    func validate() throws {
        guard (1_000...100_000_000).contains(objects) else { throw ValidationError("--objects is 1000…100000000") }
        guard (1...1_000).contains(devices) else { throw ValidationError("--devices is 1…1000") }
        guard (0...100_000_000).contains(responses ?? 0) else { throw ValidationError("--responses is 0…100000000") }
        guard (10...600_000).contains(pause) else { throw ValidationError("--pause is 10…600000 ms") }
        guard (0...100).contains(cuts) else { throw ValidationError("--cuts is 0…100") }
    }

    func report() async throws -> ScenarioReport {
        var options = LocalCluster.Options.quick
        options.services = Self.services
        // The entries are some years old.
        options.variables[.poller]?["FIELDPOST_POLLER_ENTRY_DAYS"] = "3660"
        options.arguments[.broker] = ["--topic", "\(Topic.ownName(MoveSeed.topic, of: Self.environment)):3"]
        var newOptions = options
        (newOptions.emulators, newOptions.secretKeys) = ([.broker], Self.newSecretKeys)
        return try await ScenarioStage.run(
            "move-old", options, devices: devices, limits: MoveStore.limits, unchecked: Self.unchecked
        ) { old in
            try await ScenarioStage.run(
                "move-new", newOptions, devices: devices, limits: MoveStore.limits, unchecked: Self.unchecked
            ) { new in
                try await run(from: old, to: new)
            }
        }
    }

    private func run(from old: ScenarioStage, to new: ScenarioStage) async throws -> ScenarioReport {
        let generated = GeneratedOrganisation.make(people: devices, seed: seed)
        let organisation = old.sap.placed(generated.repeated(Self.repetitionCount), in: Self.environment)
        let environment = try await prepare(organisation, on: old)
        let tokens = try await DeviceTokens(
            old.identity, environment: Self.environment, issuer: environment.issuer)
        let fleet = try await Fleet.make(organisation, seed: nil, gateway: old.gateway, tokens: tokens)
        let (tally, isOver) = (EntryTally(), Flag())
        let procedure = MoveProcedure(
            name: Self.environment, environment: environment.id, objectCount: objects, cutCount: cuts, old: old,
            new: new, fleet: fleet, tally: tally)
        var report = ScenarioReport(columns: ["seconds", "rows", "rows/s"])
        let pace = Author.Pace(pause: .milliseconds(pause), isOver: { isOver.isSet })
        let working = Task { try await fleet.work(tally: tally, pace: pace) }
        defer { working.cancel() }
        let answered: [Int64]
        try await new.pool.run { _ = try $0.run(MoveSeed.takeNumber) }
        do {
            try await waitUntil("the entries of all devices are released", within: Self.readyMax) {
                tally.now.states[.released, default: 0] >= 2 * devices
            }
            _ = try await fleet.takePauses()
            try await Task.sleep(for: Self.quietTime)
            report.add("longest pause of a device before the move", try await fleet.takePauses().max() ?? 0, "s")
            answered = try await procedure.move(&report)
        } catch {
            for line in await fleet.errors() { old.console.log(line) }
            throw error
        }
        isOver.set()
        let authors = try await finish(working, fleet, old.console)
        let moved = try await new.pool.run { try MoveStore.find(Self.environment, on: &$0)?.environment }
        guard let moved else { throw ClusterFailure("the environment is not at the new installation") }
        try await procedure.waitForForms(in: moved, &report)
        try await MoveJudge.compareObjects(environment.id, at: old.pool, moved, at: new.pool, &report)
        let rows = report.figures.filter { $0.name.hasPrefix("rows of ") }.reduce(0) { $0 + $1.value }
        let copied = rows - (report.steps[1].values["rows"] ?? 0)
        report.steps[0].values.merge(
            ["rows": copied, "rows/s": copied / max(report.steps[0].values["seconds"] ?? 0, 0.001)]) { $1 }
        let judge = MoveJudge(
            pool: new.pool, environment: moved, backend: old.sap, gateway: new.gateway, tokens: tokens)
        try await judge.compare(authors, settle: Self.settleMax, &report)
        try await judge.compareResponses(authors, answeredAtOld: answered, &report)
        return report
    }

    /// Writes the environment, its people and the seed at the old installation.
    private func prepare(
        _ organisation: Organisation, on old: ScenarioStage
    ) async throws -> DemoSetup.Environment {
        let setup = old.setup(Self.environment, backend: old.sap)
        try await old.sap.load(organisation)
        let environment = try await setup.addEnvironment(organisation.people)
        // The password is then sealed with the keys of the old installation.
        try await old.cluster.runCommand([
            "environment", "edit", Self.environment, "--backend-password-from", LocalCluster.passwordVariable,
        ])
        let kinds = old.cluster.folder.path + "/kinds.json"
        try MoveSeed.kinds.write(toFile: kinds, atomically: true, encoding: .utf8)
        try await old.cluster.runCommand(["schema", "apply", Self.environment, kinds])
        old.console.log("writing \(objects) objects")
        let seed = MoveSeed(environment: environment.id, objectCount: objects, responseCount: responses ?? objects / 10)
        try await old.pool.run { try seed.write(on: &$0) }
        try await setup.fillRealms(of: organisation.people, in: environment.id, within: Self.readyMax)
        try await old.sap.setSwitches(Self.switches)
        return environment
    }

    /// Waits until all begun entries are finished.
    private func finish(
        _ working: Task<[Author], any Error>, _ fleet: Fleet, _ console: ScenarioConsole
    ) async throws -> [Author] {
        let timeout = Task {
            try await Task.sleep(for: Self.endMax)
            for line in await fleet.errors() { console.log(line) }
            working.cancel()
        }
        defer { timeout.cancel() }
        return try await working.value
    }
}

/// A condition that one task sets and others read.
private final class Flag: Sendable {
    private let state = Atomic(false)
    var isSet: Bool { state.load(ordering: .relaxed) }
    func set() { state.store(true, ordering: .relaxed) }
}

extension Organisation {
    /// The same weeks several times, on later days.
    fileprivate func repeated(_ count: Int) -> Organisation {
        var repeated = self
        for number in 1..<count {
            // A person who joins during the first weeks has joined before the later ones.
            for var entry in entries where entry.expectation != .invalid(.notActive) {
                entry.id = StableID.uuid("round-\(number)", entry.id.text)
                entry.day = entry.day.adding(days: number * 7 * GeneratedOrganisation.weekCount)
                repeated.entries.append(entry)
            }
        }
        return repeated
    }
}

extension Fleet {
    /// The longest time of each device from a first attempt to a response since the last call, in seconds.
    func takePauses() async throws -> [Double] {
        try await concurrentMap(members) { await $0.device.takeLongestSending().inSeconds }
    }

    /// The highest mutation number of each device that has a response.
    func answered() async throws -> [Int64] {
        try await concurrentMap(members) { member in
            await member.device.queue.storedMutations.last { $0.outcome != nil }?.sequence ?? 0
        }
    }

    /// The number of devices that use a gateway and have a response beyond `numbers`.
    func count(at url: String, beyond numbers: [Int64]) async throws -> Int {
        let urls = try await concurrentMap(members) { await $0.device.gatewayURL }
        return zip(urls, zip(numbers, try await answered())).count { $0 == url && $1.1 > $1.0 }
    }
}

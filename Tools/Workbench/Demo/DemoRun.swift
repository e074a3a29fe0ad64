import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import Postgres
import ServiceRuntime
import ServiceSettings
import Synchronization

/// The demo's steps. Unavailable components are retried until the deadline.
struct DemoRun: Sendable {
    let console: DemoConsole
    let client: Client
    let pool: Pool
    let gateway: GatewayClient
    let identity: IdentitySandbox
    let backend: any DemoBackend
    /// `nil`: no defects.
    let compass: SandboxCompass?
    /// `nil`: no person can log in.
    let login: DemoLogin?
    let isEntra: Bool
    let environmentName: String
    let seed: UInt64
    let parallelMax: Int
    let hasFaults: Bool
    let hasDeletions: Bool
    let deadline: ContinuousClock.Instant

    /// Maximum time of unchanged differences after the devices are done: a killed worker keeps its keys for a lease of
    /// 30 s, and its partitions until its group has detected the failure, which another kill may delay. The time
    /// restarts with each change, because on a slow machine the services are still working.
    private static let settleMax = Duration.seconds(90)
    private static let errorsShownMax = 5
    /// The polling interval.
    private static let pollInterval = Duration.milliseconds(500)

    func run(data: String?, people: Int?, isVerifyOnly: Bool) async throws -> ScenarioReport {
        let (organisation, plan) = try await load(data: data, people: people)
        var report = ScenarioReport()
        report.add("people", organisation.people.count)
        let environment = try await prepare(organisation, isVerifyOnly: isVerifyOnly)
        let fieldwork = try await prepare(plan, organisation, in: environment.id, isVerifyOnly: isVerifyOnly)
        let defects = try await prepareDefects(organisation, in: environment.id, isVerifyOnly: isVerifyOnly)
        let fleet = try await trying {
            let tokens = try await DeviceTokens(identity, environment: environmentName, issuer: environment.issuer)
            return try await Fleet.make(
                organisation, seed: seed, hasDeletions: hasDeletions, gateway: gateway, tokens: tokens)
        }
        let reader = RealmReader(pool: pool, environment: environment.id)
        var failures: [UUID: String] = [:]
        var troubles: [String] = []
        if !isVerifyOnly {
            let desk = DefectDesk(defects)
            let untold = Task { try await desk.play(self) }
            defer { untold.cancel() }
            failures = try await work(fleet, reader, &report)
            let work = try await work(fieldwork, fleet, in: environment.id)
            report.add("mutations of tasks and appointments", work.mutations)
            troubles = work.troubles
            if defects != nil {
                troubles += try await console.step("defects", progress: { desk.progress }) { try await untold.value }
                if let shift = defectShift(fleet) { troubles += try await handIn(shift) }
            }
        }
        var verdict = try await verdict(fleet, fieldwork, defects, reader)
        verdict.add(failures: failures)
        for line in troubles { verdict.note("device", "tasks and appointments", line) }
        verdict.add(to: &report, organisation)
        report.steps = console.steps
        if !isVerifyOnly { showLogins(organisation) }
        return report
    }

    /// Prints one person of each role, who can log in.
    private func showLogins(_ organisation: Organisation) {
        guard login != nil else {
            return console.log(
                "no person can log in: \(DemoLogin.secretVariable) and \(Setting.secretKeys.variable) must both be set")
        }
        var emails: [String: String] = [:]
        for (index, person) in organisation.people.enumerated() {
            let role = FieldworkPlan.role(of: index, among: organisation.people.count).title
            if emails[role] == nil { emails[role] = person.email }
        }
        let people = emails.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
        console.log("people can log in with the password \(DemoLogin.password): \(people.joined(separator: ", "))")
    }

    // MARK: Before

    /// Generates tasks and calendars if the folder has neither.
    private func load(data: String?, people: Int?) async throws -> (Organisation, FieldworkPlan) {
        let counts = Mutex(DemoConsole.Progress(done: 0, total: 1))
        return try await console.step("organisation", progress: { counts.withLock { $0 } }) {
            var organisation =
                try data.map { try TockData.load($0) } ?? GeneratedOrganisation.make(people: people ?? 40, seed: seed)
            if let people, data != nil { organisation = organisation.limited(toPeople: people) }
            organisation = backend.placed(organisation, in: environmentName)
            let count = organisation.people.count
            let plan =
                try data.flatMap { try FieldworkData.load($0, people: count) }
                ?? GeneratedFieldwork.make(people: count, seed: seed)
            let note =
                "\(organisation.people.count) people, \(organisation.projects.count) projects, "
                + "\(organisation.elements.count) accounting codes, \(organisation.rowsTotal) rows, "
                + "\(organisation.entries.count) entries"
                + ", \(plan.tasks.count) tasks, \(plan.editCount) edits of calendars"
            counts.withLock { $0 = DemoConsole.Progress(done: 1, total: 1, note: note) }
            return (organisation, plan)
        }
    }

    var setup: DemoSetup {
        DemoSetup(
            pool: pool, environmentName: environmentName, identity: identity, backend: backend, login: login,
            isEntra: isEntra)
    }

    private func prepare(_ organisation: Organisation, isVerifyOnly: Bool) async throws -> DemoSetup.Environment {
        let setup = setup
        if isVerifyOnly { return try await trying { try await setup.environment() } }
        try await console.step(
            "master data in \(type(of: backend).name)", progress: { DemoConsole.Progress(done: 1, total: 1) }
        ) {
            try await trying { try await backend.load(organisation) }
        }
        let invited = Atomic<Int>(0)
        let people = organisation.people
        let environment = try await console.step(
            "people invited",
            progress: { DemoConsole.Progress(done: invited.load(ordering: .relaxed), total: people.count) }
        ) {
            let environment = try await trying { try await setup.addEnvironment(people) }
            try await trying { try await setup.invite(people, to: environment.id) }
            invited.store(people.count, ordering: .relaxed)
            return environment
        }
        try await awaitRealms(of: people, setup, environment.id)
        return environment
    }

    private func awaitRealms(
        of people: [Organisation.Person], _ setup: DemoSetup, _ environment: EnvironmentID
    ) async throws {
        let ready = Atomic<Int>(0)
        try await console.step(
            "realms initialized",
            progress: { DemoConsole.Progress(done: ready.load(ordering: .relaxed), total: people.count) }
        ) {
            while true {
                let count = try await trying { try await setup.initializedCount(of: people, in: environment) }
                ready.store(count, ordering: .relaxed)
                if count >= people.count { return }
                guard ContinuousClock.now < deadline else {
                    throw DemoFailure("only \(count) of \(people.count) realms were initialized in time")
                }
                try await Task.sleep(for: Self.pollInterval)
            }
        }
    }

    // MARK: The devices at work

    private func work(
        _ fleet: Fleet, _ reader: RealmReader, _ report: inout ScenarioReport
    ) async throws -> [UUID: String] {
        if hasFaults { _ = try await trying { try await backend.setSwitches(DemoSwitches.faults) } }
        let tally = FlowTally()
        let total = fleet.planCount
        let positionBefore = try await trying { try await reader.position() }
        let start = ContinuousClock.now
        let outcomes = try await console.step(
            "entries in flight",
            progress: {
                let now = tally.now
                return DemoConsole.Progress(done: now.finished, total: total, note: now.line)
            }
        ) {
            try await beforeDeadline { try await fleet.work(parallelMax: parallelMax, tally: tally) }
        }
        let elapsed = ContinuousClock.now - start
        if outcomes == nil {
            for line in await fleet.errors().prefix(Self.errorsShownMax) { console.log(line) }
        }
        report.add("mutations of entries", tally.now.mutations)
        let events = try await trying { try await reader.eventCount(after: positionBefore) }
        report.add("events", events)
        report.add("event rate", Double(events) / max(elapsed.inSeconds, 0.001), "events/s")
        var measured: [Duration] = []
        for member in fleet.members { measured += await member.device.measured }
        let latencies = Percentiles(measured)
        for percent in [50, 95, 99] {
            guard let latency = latencies[percent] else { continue }
            report.add("device to released, p\(percent)", latency.inSeconds * 1_000, "ms")
        }
        if hasFaults {
            // A late commit may be pending; an additional record would otherwise not be detected.
            let lateMilliseconds = try await trying { try await backend.setSwitches(DemoSwitches.calm) }
            try await Task.sleep(for: .milliseconds(lateMilliseconds + 500))
        }
        return (outcomes ?? []).reduce(into: [:]) { $0.merge($1.failures) { $1 } }
    }

    // MARK: The verdict

    /// Compares until there are no differences, or until they no longer change.
    private func verdict(
        _ fleet: Fleet, _ fieldwork: DemoFieldwork, _ defects: DemoDefects?, _ reader: RealmReader
    ) async throws -> Verdict {
        let progress = Mutex(DemoConsole.Progress(done: 0, total: fleet.members.count))
        return try await console.step("verdict", progress: { progress.withLock { $0 } }) {
            var settling = VerdictSettling(settleMax: Self.settleMax)
            while true {
                let verdict = try await trying {
                    progress.withLock { $0.done = 0 }
                    return try await judge(fleet, fieldwork, defects, reader) { progress.withLock { $0.done += 1 } }
                }
                if settling.areFinal(verdict.differences, now: .now) { return verdict }
                // Reported even if it disappears later: a temporary difference may be relevant.
                let first = verdict.differences.first?.description ?? ""
                progress.withLock { $0.note = "looked again at \(verdict.differences.count) differences: \(first)" }
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    private func judge(
        _ fleet: Fleet, _ fieldwork: DemoFieldwork, _ defects: DemoDefects?, _ reader: RealmReader,
        _ onEach: () -> Void
    ) async throws -> Verdict {
        try await fleet.refresh()
        let people = fleet.members.map(\.device.person)
        var verdict = Verdict(of: people, records: try await backend.recorded())
        let reading = try await reading(in: reader.environment)
        let defectReading = try await defects?.reading()
        verdict.compare(fieldwork, reading, own: fleet.members.map(\.device.realm))
        var others: [RealmPath: RealmContent] = [:]
        if let defectReading, let shift = defectShift(fleet) { verdict.compare(shift, defectReading) }
        for (member, id) in zip(fleet.members, fieldwork.people) {
            let (person, own) = (member.device.person, member.device.realm)
            let contents = await member.device.contents
            let stored = try await reader.content(of: own)
            verdict.compare(person.email, own, device: contents[own] ?? [:], stored: stored)
            for line in reading.strange(to: id, device: contents) { verdict.note(person.email, "realms", line) }
            for path in reading.realms(of: id, device: contents) where path != own {
                if others[path] == nil { others[path] = try await reader.content(of: path) }
                verdict.compare(person.email, path, device: contents[path] ?? [:], stored: others[path] ?? [:])
            }
            verdict.compare(person, member.plans, realm: stored)
            if let defectReading {
                verdict.compare(person.email, login: EmailAddress.lowered(person.email), defectReading, realm: stored)
            }
            onEach()
        }
        verdict.finish()
        return verdict
    }
}

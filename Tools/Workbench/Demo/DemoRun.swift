import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import Postgres
import ServiceRuntime
import Synchronization

/// The demo's steps, one after the other. Whatever is away for a while is waited for until the deadline.
struct DemoRun: Sendable {
    let console: DemoConsole
    let client: Client
    let pool: Pool
    let gateway: GatewayClient
    let identity: IdentitySandbox
    let backend: any DemoBackend
    /// `nil`: there are no defects.
    let compass: SandboxCompass?
    /// `nil`: nobody can log in.
    let login: DemoLogin?
    let isEntra: Bool
    let environmentName: String
    let seed: UInt64
    let parallelMax: Int
    let isChaotic: Bool
    let hasDeletions: Bool
    let deadline: ContinuousClock.Instant

    /// Maximum time of unchanged differences once the devices are done: a worker that was killed keeps its keys for
    /// a lease of 30 s, and its partitions until its group has noticed, which another kill may delay. The time begins
    /// again with each change: on a slow machine the services are still at work.
    private static let settleMax = Duration.seconds(90)
    private static let troublesShownMax = 5
    /// A wait between two looks at what others are to bring about.
    private static let lookInterval = Duration.milliseconds(500)

    func run(data: String?, people: Int?, isVerifyOnly: Bool) async throws -> DemoReport {
        let (organisation, plan) = try await load(data: data, people: people)
        var report = DemoReport()
        report.people = organisation.people.count
        for (index, person) in organisation.people.enumerated() {
            let role = FieldworkPlan.role(of: index, among: organisation.people.count)
            if report.examples[role.title] == nil { report.examples[role.title] = person.email }
        }
        report.rowsTotal = organisation.rowsTotal
        let environment = try await prepare(organisation, isVerifyOnly: isVerifyOnly)
        let fieldwork = try await prepare(plan, organisation, in: environment.id, isVerifyOnly: isVerifyOnly)
        let defects = try await prepareDefects(organisation, in: environment.id, isVerifyOnly: isVerifyOnly)
        let fleet = try await trying {
            let tokens = try await DeviceTokens(identity, environment: environmentName, issuer: environment.issuer)
            return try await DemoFleet.make(
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
            report.mutations += work.mutations
            troubles = work.troubles
            if defects != nil {
                troubles += try await console.step("defects", progress: { desk.progress }) { try await untold.value }
                if let shift = defectShift(fleet) { troubles += try await handIn(shift) }
            }
        }
        var verdict = try await verdict(fleet, fieldwork, defects, reader)
        verdict.add(failures: failures)
        for line in troubles { verdict.note("device", "tasks and appointments", line) }
        report.take(verdict, organisation)
        report.steps = console.steps
        return report
    }

    // MARK: Before

    /// What the folder lacks of both tasks and calendars is generated.
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
                    throw DemoProblem("only \(count) of \(people.count) realms were initialized in time")
                }
                try await Task.sleep(for: Self.lookInterval)
            }
        }
    }

    // MARK: The devices at work

    private func work(
        _ fleet: DemoFleet, _ reader: RealmReader, _ report: inout DemoReport
    ) async throws -> [UUID: String] {
        if isChaotic { _ = try await trying { try await backend.setSwitches(DemoSwitches.chaos) } }
        let tally = FlowTally()
        let total = fleet.planCount
        let positionBefore = try await trying { try await reader.position() }
        let start = ContinuousClock.now
        let failures = try await console.step(
            "entries on their way",
            progress: {
                let now = tally.now
                return DemoConsole.Progress(done: now.finished, total: total, note: now.line)
            }
        ) {
            try await beforeDeadline { try await fleet.work(parallelMax: parallelMax, tally: tally) }
        }
        let elapsed = ContinuousClock.now - start
        if failures == nil { await tellTroubles(of: fleet) }
        report.mutations = tally.now.mutations
        report.events = try await trying { try await reader.eventCount(after: positionBefore) }
        report.eventsPerSecond = Double(report.events) / max(elapsed.inSeconds, 0.001)
        var measured: [Duration] = []
        for member in fleet.members { measured += await member.device.measured }
        report.releasedAfter = DemoReport.Latency(Percentiles(measured))
        if isChaotic {
            // A record that was to come late may still be on its way; without it, one too many would not be seen.
            let lateMilliseconds = try await trying { try await backend.setSwitches(DemoSwitches.calm) }
            try await Task.sleep(for: .milliseconds(lateMilliseconds + 500))
        }
        return failures ?? [:]
    }

    /// The time is up: what the first devices met with last may tell why.
    func tellTroubles(of fleet: DemoFleet) async {
        var shownCount = 0
        for member in fleet.members where shownCount < Self.troublesShownMax {
            guard let trouble = await member.device.trouble else { continue }
            console.say("\(member.device.person.email): \(trouble)")
            shownCount += 1
        }
    }

    // MARK: The verdict

    /// Compares until there is nothing to say, or nothing changes any more.
    private func verdict(
        _ fleet: DemoFleet, _ fieldwork: DemoFieldwork, _ defects: DemoDefects?, _ reader: RealmReader
    ) async throws -> Verdict {
        let progress = Mutex(DemoConsole.Progress(done: 0, total: fleet.members.count))
        return try await console.step("verdict", progress: { progress.withLock { $0 } }) {
            var looks = VerdictLooks(settleMax: Self.settleMax)
            while true {
                let verdict = try await trying {
                    progress.withLock { $0.done = 0 }
                    return try await judge(fleet, fieldwork, defects, reader) { progress.withLock { $0.done += 1 } }
                }
                if looks.areEnough(verdict.differences, now: .now) { return verdict }
                // Said even when it goes away: what differed for a moment may be worth a look.
                let first = verdict.differences.first?.description ?? ""
                progress.withLock { $0.note = "looked again at \(verdict.differences.count) differences: \(first)" }
                try await Task.sleep(for: .seconds(1))
            }
        }
    }

    private func judge(
        _ fleet: DemoFleet, _ fieldwork: DemoFieldwork, _ defects: DemoDefects?, _ reader: RealmReader,
        _ onEach: () -> Void
    ) async throws -> Verdict {
        try await fleet.refresh()
        let people = fleet.members.map(\.device.person)
        var verdict = Verdict(of: people, records: try await backend.recorded())
        let reading = try await reading(in: reader.environment)
        let told = try await defects?.reading()
        verdict.compare(fieldwork, reading, own: fleet.members.map(\.device.realm))
        var others: [RealmPath: RealmContent] = [:]
        if let told, let shift = defectShift(fleet) { verdict.compare(shift, told) }
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
            if let told {
                verdict.compare(person.email, login: EmailAddress.lowered(person.email), told, realm: stored)
            }
            onEach()
        }
        verdict.finish()
        return verdict
    }
}

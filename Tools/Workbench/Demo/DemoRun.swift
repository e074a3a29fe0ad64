import Essentials
import FoundationEssentials
import Postgres
import ServiceSettings

/// The demo's steps. Unavailable components are retried until the deadline.
struct DemoRun: Sendable {
    let options: DemoCommand
    let console = ScenarioConsole()
    let pool: Pool
    let gateway: GatewayClient
    let identity: IdentitySandbox
    let backend: any DemoBackend
    /// `nil`: no defects.
    let compass: SandboxCompass?
    /// `nil`: no person can log in.
    let login: DemoLogin?
    let deadline: ContinuousClock.Instant
    let startedAt = Timestamp.now()

    /// The polling interval.
    private static let pollInterval = Duration.milliseconds(500)

    var environmentName: String { options.environmentName }

    func run() async throws -> ScenarioReport {
        let (organisation, planned) = try await load()
        var report = ScenarioReport()
        report.add("people", organisation.people.count)
        let environment = try await prepare(organisation)
        let plan = try await prepare(planned, organisation, in: environment.id)
        let defects = try await prepareDefects(organisation, in: environment.id)
        let fleet = try await trying {
            let tokens = try await DeviceTokens(identity, environment: environmentName, issuer: environment.issuer)
            return try await Fleet.make(
                organisation, seed: options.seed, hasDeletions: !options.withoutDeletions, gateway: gateway,
                tokens: tokens)
        }
        var failures: [UUID: String] = [:]
        var problems: [String] = []
        if !options.verifyOnly {
            let progress = ScenarioConsole.Progress(total: defects?.stepCount ?? 0)
            let desk = Task { try await performChanges(defects, progress) }
            defer { desk.cancel() }
            failures = try await work(fleet, in: environment.id, &report)
            let work = try await work(plan, fleet, in: environment.id)
            report.add("mutations of tasks and appointments", work.mutations)
            problems = work.problems
            if defects != nil {
                problems += try await console.step("defects", progress: { progress.now }) { try await desk.value }
                if let shift = defectShift(fleet) { problems += try await submitCommands(shift) }
            }
        }
        var verdict = try await verdict(fleet, plan, defects, in: environment.id)
        verdict.add(failures: failures)
        for line in problems { verdict.note("device", "tasks and appointments", line) }
        verdict.add(to: &report, organisation)
        report.steps = console.steps
        if !options.verifyOnly { showLogins(organisation) }
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
    private func load() async throws -> (Organisation, FieldworkPlan) {
        let (data, people, seed) = (options.data, options.people, options.seed)
        return try await console.step("organisation") { progress in
            var organisation =
                try data.map { try TockData.load($0) } ?? GeneratedOrganisation.make(people: people ?? 40, seed: seed)
            if let people, data != nil { organisation = organisation.limited(toPeople: people) }
            organisation = backend.placed(organisation, in: environmentName)
            let count = organisation.people.count
            let plan =
                try data.flatMap { try FieldworkData.load($0, people: count) }
                ?? GeneratedFieldwork.make(people: count, seed: seed)
            progress.note(
                "\(count) people, \(organisation.projects.count) projects, \(organisation.elements.count) accounting "
                    + "codes, \(organisation.rowsTotal) rows, \(organisation.entries.count) entries, "
                    + "\(plan.tasks.count) tasks, \(plan.editCount) edits of calendars")
            progress.add()
            return (organisation, plan)
        }
    }

    var setup: DemoSetup {
        DemoSetup(
            pool: pool, environmentName: environmentName, identity: identity, backend: backend, login: login,
            isEntra: options.entra)
    }

    private func prepare(_ organisation: Organisation) async throws -> DemoSetup.Environment {
        let (setup, people) = (setup, organisation.people)
        if options.verifyOnly { return try await trying { try await setup.environment() } }
        try await console.step("master data in \(type(of: backend).name)") { progress in
            try await trying { try await backend.load(organisation) }
            progress.add()
        }
        let environment = try await console.step("people invited", total: people.count) { progress in
            let environment = try await trying { try await setup.addEnvironment(people) }
            try await trying { try await setup.invite(people, to: environment.id) }
            progress.set(people.count)
            return environment
        }
        try await console.step("realms initialized", total: people.count) { progress in
            while true {
                let count = try await trying { try await setup.initializedCount(of: people, in: environment.id) }
                progress.set(count)
                if count >= people.count { return }
                guard ContinuousClock.now < deadline else {
                    throw DemoFailure("only \(count) of \(people.count) realms were initialized before the deadline")
                }
                try await Task.sleep(for: Self.pollInterval)
            }
        }
        return environment
    }

    // MARK: Waiting

    /// Minimum time of retries, even after the deadline.
    private static let graceMax = Duration.seconds(60)

    /// Retries until the deadline; after it, for a short time.
    func trying<Success: Sendable>(_ body: () async throws -> Success) async throws -> Success {
        try await retrying(until: max(deadline, .now + Self.graceMax), body)
    }

    /// - Returns: `nil` when the deadline came first; `body` was cancelled then.
    func beforeDeadline<Success: Sendable>(
        _ body: @escaping @Sendable () async throws -> Success
    ) async throws -> Success? {
        let deadline = deadline
        return try await withThrowingTaskGroup(of: Success?.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await body() }
            group.addTask {
                try await Task.sleep(until: deadline, clock: .continuous)
                return nil
            }
            return try await group.next() ?? nil
        }
    }
}

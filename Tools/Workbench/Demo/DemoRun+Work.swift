import Essentials
import FoundationEssentials
import Model
import Postgres
import ServiceSettings

extension DemoRun {
    // MARK: Entries

    private static let errorsShownMax = 5

    /// - Returns: The reasons for which entries did not end as planned.
    func work(
        _ fleet: Fleet, in environment: EnvironmentID, _ report: inout ScenarioReport
    ) async throws -> [UUID: String] {
        if options.faults { _ = try await trying { try await backend.setSwitches(EmulatorFaults.injected) } }
        let tally = EntryTally()
        let total = fleet.planCount
        let positionBefore = try await snapshot(environment).position
        let start = ContinuousClock.now
        let authors = try await console.step(
            "entries in flight", progress: { .init(done: tally.now.finished, total: total, note: tally.now.line) }
        ) {
            try await beforeDeadline { try await fleet.work(parallelMax: options.devicesParallel, tally: tally) }
        }
        let elapsed = ContinuousClock.now - start
        if authors == nil {
            for line in await fleet.errors().prefix(Self.errorsShownMax) { console.log(line) }
        }
        report.add("mutations of entries", tally.now.mutations)
        let events = try await trying { try await eventCount(in: environment, after: positionBefore) }
        report.add("events", events)
        report.add("event rate", Double(events) / max(elapsed.inSeconds, 0.001), "events/s")
        let measured = try await concurrentMap(fleet.members) { await $0.device.measured }.flatMap(\.self)
        for percent in [50, 95, 99] {
            guard let latency = measured.percentile(percent) else { continue }
            report.add("device to released, p\(percent)", latency.inSeconds * 1_000, "ms")
        }
        if options.faults {
            // A late commit may be pending; an additional record would otherwise not be detected.
            let lateMilliseconds = try await trying { try await backend.setSwitches(EmulatorFaults.none) }
            try await Task.sleep(for: .milliseconds(lateMilliseconds + 500))
        }
        return (authors ?? []).reduce(into: [:]) { $0.merge($1.failures) { $1 } }
    }

    /// Changes after a position whose kind is published on a topic.
    private func eventCount(in environment: EnvironmentID, after position: Int64) async throws -> Int {
        let kinds = Array(Set(Topics.all.flatMap(\.kinds))).map(\.rawValue)
        return try await pool.number(
            """
            SELECT count(*) FROM realm.change WHERE environment_id = \(environment.rawValue)
                AND position > \(position) AND kind = ANY (\(kinds))
            """)
    }

    // MARK: Tasks and calendars

    /// Gives people their roles, and adds their ids to the plan.
    ///
    /// - Throws: ``DemoFailure`` when the environment is another demo's, whose tasks and calendars are not as planned.
    func prepare(
        _ plan: FieldworkPlan, _ organisation: Organisation, in environment: EnvironmentID
    ) async throws -> FieldworkPlan {
        let before = try await snapshot(environment).masters.keys
        guard plan.tasks.isEmpty || before.isEmpty || plan.tasks.contains(where: { before.contains($0.id) }) else {
            throw DemoFailure(
                "the environment \(environmentName) has \(before.count) tasks of another program, such as a demo with "
                    + "other people or other data: repeat it with the same options, or use another --environment")
        }
        let people = try await trying { try await setup.objects(of: organisation.people, in: environment) }
        if !options.verifyOnly {
            let roles = people.enumerated().map { ($1, FieldworkPlan.role(of: $0, among: people.count)) }
            try await trying { try await pool.run { try DemoSetup.give(roles, in: environment, on: &$0) } }
            if let outline = plan.outline {
                try await trying { try await pool.run { try DemoSetup.draw(outline, in: environment, on: &$0) } }
            }
        }
        var plan = plan
        plan.people = people
        return plan
    }

    /// - Returns: The number of responses to mutations, and the mutations that were rejected or not completed before
    ///   the deadline.
    func work(
        _ plan: FieldworkPlan, _ fleet: Fleet, in environment: EnvironmentID
    ) async throws -> (mutations: Int, problems: [String]) {
        let tally = FieldworkTally()
        let shift = FieldworkShift(plan, fleet, before: try await snapshot(environment), tally: tally)
        let total = plan.tasks.count + plan.editCount
        let isDone = try await console.step(
            "tasks and appointments",
            progress: { .init(done: tally.now.finished, total: total, note: tally.now.line) }
        ) {
            try await beforeDeadline {
                try await shift.work()
                return true
            } ?? false
        }
        var (count, problems) = await shift.answers()
        if !isDone {
            problems.append(
                "\(total - tally.now.finished) tasks and edits of calendars were not completed before the deadline")
        }
        return (count, problems)
    }

    private func snapshot(_ environment: EnvironmentID) async throws -> EnvironmentSnapshot {
        try await trying { try await pool.run { try EnvironmentSnapshot.read(environment, on: &$0) } }
    }

    // MARK: Defects

    /// - Returns: `nil` where there are no defects: without Compass, or without a key to seal its account with.
    func prepareDefects(_ organisation: Organisation, in environment: EnvironmentID) async throws -> DemoDefects? {
        guard let compass else { return nil }
        let defects = DemoDefects(
            compass, pool: pool, environment: environment, named: environmentName,
            people: organisation.people.map(\.email))
        if options.verifyOnly { return defects }
        guard let login else {
            console.log(
                "there are no defects: \(DemoLogin.secretVariable) and \(Setting.secretKeys.variable) are not both set")
            return nil
        }
        try await trying { try await defects.prepare(names: organisation.people.map(\.name), login) }
        return defects
    }

    /// Makes the changes in Compass itself, with retries.
    ///
    /// - Returns: The changes that were not completed before the deadline.
    func performChanges(_ defects: DemoDefects?, _ progress: ScenarioConsole.Progress) async throws -> [String] {
        guard let defects else { return [] }
        let isDone = try await beforeDeadline {
            try await trying { try await defects.performChanges { progress.set($0) } }
            return true
        }
        if isDone == true { return [] }
        let (done, total) = (progress.now.done, progress.now.total)
        return ["only \(done) of \(total) changes of defects had their notices before the deadline"]
    }

    /// `nil` without Compass.
    func defectShift(_ fleet: Fleet) -> DefectShift? {
        guard compass != nil else { return nil }
        let members = fleet.members.prefix(DefectShift.peopleMax)
        return DefectShift(
            people: members.map { ($0.device, EmailAddress.lowered($0.device.person.email)) },
            environment: environmentName)
    }

    /// - Returns: The commands that were rejected, or not completed before the deadline.
    func submitCommands(_ shift: DefectShift) async throws -> [String] {
        try await console.step("defects from devices", total: shift.commandCount) { progress in
            try await beforeDeadline { try await shift.work { progress.add() } }
                ?? ["only \(progress.now.done) of \(shift.commandCount) commands for defects met the deadline"]
        }
    }

    // MARK: The verdict

    /// Maximum time of unchanged differences after the devices are done: a killed worker keeps its keys for a lease of
    /// 30 s, and its partitions until its group has detected the failure, which another kill may delay. The time
    /// restarts with each change, because on a slow machine the services are still working.
    private static let settleMax = Duration.seconds(90)

    /// Compares until there are no differences, or until they no longer change.
    func verdict(
        _ fleet: Fleet, _ plan: FieldworkPlan, _ defects: DemoDefects?, in environment: EnvironmentID
    ) async throws -> Verdict {
        try await console.step("verdict", total: fleet.members.count) { progress in
            try await Verdict.settled(
                within: Self.settleMax,
                onRepeat: { verdict in
                    // Reported even if it disappears later: a temporary difference may be relevant.
                    let first = verdict.differences.first?.description.prefix(100) ?? ""
                    progress.note("\(verdict.differences.count) differences, compared again; the first: \(first)")
                }
            ) {
                try await trying {
                    progress.set(0)
                    return try await compare(fleet, plan, defects, in: environment) { progress.add() }
                }
            }
        }
    }

    private func compare(
        _ fleet: Fleet, _ plan: FieldworkPlan, _ defects: DemoDefects?, in environment: EnvironmentID,
        _ onEach: () -> Void
    ) async throws -> Verdict {
        try await fleet.refresh()
        var verdict = Verdict(of: fleet.members.map(\.device.person), records: try await backend.recorded())
        // An earlier run may have used services without notices of entries.
        verdict.noticesSince = startedAt
        let reading = FieldworkReading(try await snapshot(environment))
        verdict.compare(plan, reading, own: fleet.members.map(\.device.realm))
        await verdict.compare(fleet.members, reading, onEach)
        if let history = try await defects?.reading() {
            if let shift = defectShift(fleet) { verdict.compare(shift, history) }
            for device in fleet.members.map(\.device) {
                let email = device.person.email
                verdict.compare(
                    email, login: EmailAddress.lowered(email), history,
                    realm: reading.snapshot.realms[device.realm] ?? [:])
            }
        }
        verdict.finish()
        return verdict
    }
}

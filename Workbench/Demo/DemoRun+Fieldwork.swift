import DeviceClient
import Essentials
import FoundationEssentials
import HTTP
import Model
import Postgres

/// What the demo does with teams, tasks, positions and appointments.
struct DemoFieldwork: Sendable {
    let plan: FieldworkPlan
    /// The ids of the people's `Person` objects, by number.
    let people: [UUID]
}

extension DemoRun {
    /// Gives people their roles, and looks up who they are.
    ///
    /// - Parameter data: The folder with tasks and calendars; what it lacks altogether is generated.
    func prepareFieldwork(
        _ organisation: Organisation, in environment: EnvironmentID, data: String?, isVerifyOnly: Bool
    ) async throws -> DemoFieldwork {
        let count = organisation.people.count
        let plan =
            try data.flatMap { try FieldworkData.load($0, people: count) }
            ?? GeneratedFieldwork.make(people: count, seed: seed)
        let people = try await trying { try await setup.objects(of: organisation.people, in: environment) }
        guard !isVerifyOnly else { return DemoFieldwork(plan: plan, people: people) }
        let roles = people.enumerated().map { ($1, FieldworkPlan.role(of: $0, among: count)) }
        try await trying {
            try await pool.run { try DemoSetup.give(roles, in: environment, on: &$0) }
        }
        return DemoFieldwork(plan: plan, people: people)
    }

    /// - Returns: What was refused, or did not come to its end in time.
    func work(_ fieldwork: DemoFieldwork, _ fleet: DemoFleet, in environment: EnvironmentID) async throws -> [String] {
        let (plan, tally) = (fieldwork.plan, FieldworkTally())
        let before = try await snapshot(environment)
        let shift = FieldworkShift(
            plan: plan, devices: fleet.members.map(\.device), people: fieldwork.people,
            absences: fleet.members.map(\.absence), before: before, tally: tally)
        let total = plan.tasks.count + plan.editCount
        let failures = try await console.step(
            "tasks and appointments",
            progress: {
                let now = tally.now
                return DemoConsole.Progress(done: now.finished, total: total, note: now.line)
            }
        ) {
            try await beforeDeadline { try await shift.work() }
        }
        if failures == nil { await tellTroubles(of: fleet) }
        return failures ?? ["\(total - tally.now.finished) tasks and edits of calendars were not done in time"]
    }

    private func snapshot(_ environment: EnvironmentID) async throws -> FieldworkSnapshot {
        try await trying {
            try await pool.run { try FieldworkSnapshot.read(environment, kinds: FieldworkSnapshot.kinds, on: &$0) }
        }
    }

    /// What the verdict compares of tasks, positions and shares.
    func reading(in environment: EnvironmentID) async throws -> FieldworkReading {
        FieldworkReading(try await snapshot(environment))
    }
}

extension Verdict {
    /// How tasks and calendars ended.
    struct Fieldwork: Equatable, Sendable {
        var teams = 0
        var completed = 0
        var open = 0
        var referred = 0
        var cancelled = 0
        var withoutCoordinates = 0
        var appointments = 0
        var shared = 0
        var positions = 0
    }

    /// Masters and calendars must be as planned, and copies as whoever reads what people wrote expects them.
    mutating func compare(_ work: DemoFieldwork, _ reading: FieldworkReading, own: [RealmPath]) {
        for line in reading.differences() { note("fan-out", "copies", line) }
        let masters = reading.snapshot.objects(.fieldTask, in: .manager)
            .merging(reading.snapshot.objects(.fieldTask, in: .archive)) { first, _ in first }
        var planned: Set<UUID> = []
        for life in work.plan.tasks {
            planned.insert(life.id)
            let stored = masters[life.id].flatMap {
                try? JSONDecoder().decode(FieldTask.self, from: Data($0.bytes))
            }
            let expected = life.expected(work.people)
            if stored != expected {
                note("task", life.id.text, "is \(Self.text(stored)), planned was \(Self.text(expected))")
                continue
            }
            count(life)
        }
        for id in masters.keys where !planned.contains(id) { note("task", id.text, "is there, and nobody planned it") }
        fieldwork.teams = reading.snapshot.objects(.team, in: .common).count
        fieldwork.positions = reading.snapshot.objects(.location, in: .manager).count
        compare(work.plan.calendars, reading.snapshot, own)
    }

    private mutating func count(_ life: FieldworkPlan.TaskLife) {
        if life.made.place?.latitude == nil { fieldwork.withoutCoordinates += 1 }
        switch life.end {
        case .open: fieldwork.open += 1
        case .completed: fieldwork.completed += 1
        case .referred: fieldwork.referred += 1
        case .cancelled: fieldwork.cancelled += 1
        }
    }

    private static func text(_ task: FieldTask?) -> String {
        task.map { String(describing: $0).prefix(400).description } ?? "not there"
    }

    /// Every calendar's appointments are in its owner's realm as its last edit has them.
    private mutating func compare(
        _ calendars: [FieldworkPlan.Calendar], _ snapshot: FieldworkSnapshot, _ own: [RealmPath]
    ) {
        var expected: [RealmPath: [UUID: Appointment]] = [:]
        for edit in calendars.compactMap(\.edits.last) {
            for item in edit.items { expected[own[edit.owner], default: [:]][item.id] = item.appointment }
            fieldwork.shared += edit.items.count * edit.recipients.count
        }
        for path in own {
            let stored = snapshot.objects(.appointment, in: path).compactMapValues {
                try? JSONDecoder().decode(Appointment.self, from: Data($0.bytes))
            }
            fieldwork.appointments += stored.count
            guard stored != expected[path] ?? [:] else { continue }
            note("\(path)", "appointments", "there are \(stored.count), planned were \(expected[path]?.count ?? 0)")
        }
    }
}

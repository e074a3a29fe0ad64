import DeviceClient
import Essentials
import FoundationEssentials
import HTTPClient
import Model
import Postgres

/// The demo's teams, tasks, positions and appointments.
struct DemoFieldwork: Sendable {
    let plan: FieldworkPlan
    /// The ids of the people's `Person` objects, by number.
    let people: [UUID]
}

extension DemoRun {
    /// Gives people their roles, and reads their ids.
    ///
    /// - Throws: ``DemoFailure`` when the environment is another demo's, whose tasks and calendars are not as planned.
    func prepare(
        _ plan: FieldworkPlan, _ organisation: Organisation, in environment: EnvironmentID, isVerifyOnly: Bool
    ) async throws -> DemoFieldwork {
        let before = try await snapshot(environment).masters.keys
        guard plan.tasks.isEmpty || before.isEmpty || plan.tasks.contains(where: { before.contains($0.id) }) else {
            throw DemoFailure(
                "the environment \(environmentName) has \(before.count) tasks of another program, such as a demo with "
                    + "other people or other data: repeat it with the same options, or use another --environment")
        }
        let people = try await trying { try await setup.objects(of: organisation.people, in: environment) }
        if !isVerifyOnly {
            let roles = people.enumerated().map { ($1, FieldworkPlan.role(of: $0, among: people.count)) }
            try await trying { try await pool.run { try DemoSetup.give(roles, in: environment, on: &$0) } }
        }
        return DemoFieldwork(plan: plan, people: people)
    }

    /// - Returns: The number of responses to mutations, and the mutations that were rejected or not completed in time.
    func work(
        _ fieldwork: DemoFieldwork, _ fleet: Fleet, in environment: EnvironmentID
    ) async throws -> (mutations: Int, troubles: [String]) {
        let tally = FieldworkTally()
        let shift = FieldworkShift(fieldwork, fleet, before: try await snapshot(environment), tally: tally)
        let total = fieldwork.plan.tasks.count + fieldwork.plan.editCount
        let isDone = try await console.step(
            "tasks and appointments",
            progress: {
                let now = tally.now
                return DemoConsole.Progress(done: now.finished, total: total, note: now.line)
            }
        ) {
            try await beforeDeadline {
                try await shift.work()
                return true
            } ?? false
        }
        var (count, troubles) = await shift.answers()
        if !isDone {
            troubles.append("\(total - tally.now.finished) tasks and edits of calendars were not done in time")
        }
        return (count, troubles)
    }

    private func snapshot(_ environment: EnvironmentID) async throws -> FieldworkSnapshot {
        try await trying {
            try await pool.run { try FieldworkSnapshot.read(environment, kinds: FieldworkSnapshot.kinds, on: &$0) }
        }
    }

    /// The expected tasks, positions and shares.
    func reading(in environment: EnvironmentID) async throws -> FieldworkReading {
        FieldworkReading(try await snapshot(environment))
    }
}

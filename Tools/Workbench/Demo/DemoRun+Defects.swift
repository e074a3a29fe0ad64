import Model
import ServiceRuntime
import ServiceSettings
import Synchronization

extension DemoRun {
    /// - Returns: `nil` where there are no defects: without Compass, or without a key to seal its account with.
    func prepareDefects(
        _ organisation: Organisation, in environment: EnvironmentID, isVerifyOnly: Bool
    ) async throws -> DemoDefects? {
        guard let compass else { return nil }
        let defects = DemoDefects(
            compass, pool: pool, environment: environment, named: environmentName,
            people: organisation.people.map(\.email))
        if isVerifyOnly { return defects }
        guard let login else {
            console.log(
                "there are no defects: \(DemoLogin.secretVariable) and \(Setting.secretKeys.variable) are not both set")
            return nil
        }
        try await trying { try await defects.prepare(names: organisation.people.map(\.name), login) }
        return defects
    }
}

extension DemoRun {
    /// `nil` without Compass.
    func defectShift(_ fleet: Fleet) -> DefectShift? {
        guard compass != nil else { return nil }
        let members = fleet.members.prefix(DefectShift.peopleMax)
        return DefectShift(
            people: members.map { ($0.device, EmailAddress.lowered($0.device.person.email)) },
            environment: environmentName)
    }

    /// - Returns: The commands that were refused, or not done in time.
    func handIn(_ shift: DefectShift) async throws -> [String] {
        let doneCount = Counter()
        return try await console.step(
            "defects from devices",
            progress: { DemoConsole.Progress(done: doneCount.value, total: shift.commandCount) }
        ) {
            try await beforeDeadline { try await shift.work { doneCount.add() } }
                ?? ["only \(doneCount.value) of \(shift.commandCount) commands about defects were done in time"]
        }
    }
}

/// Counts what several tasks do.
private final class Counter: Sendable {
    private let count = Atomic<Int>(0)
    var value: Int { count.load(ordering: .relaxed) }
    func add() { count.add(1, ordering: .relaxed) }
}

/// Runs the changes in Compass itself during the demo.
final class DefectDesk: Sendable {
    private let defects: DemoDefects?
    private let doneCount = Atomic<Int>(0)

    init(_ defects: DemoDefects?) { self.defects = defects }

    var progress: DemoConsole.Progress {
        DemoConsole.Progress(done: doneCount.load(ordering: .relaxed), total: defects?.stepCount ?? 0)
    }

    /// Executes the changes, with retries.
    ///
    /// - Returns: The changes that were not done in time.
    func play(_ run: DemoRun) async throws -> [String] {
        guard let defects else { return [] }
        let isDone = try await run.beforeDeadline {
            try await run.trying { try await defects.play { self.doneCount.store($0, ordering: .relaxed) } }
            return true
        }
        if isDone == true { return [] }
        return ["only \(progress.done) of \(progress.total) changes of defects had their notices in time"]
    }
}

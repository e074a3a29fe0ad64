import Essentials
import Kafka
import LocalCluster
import Model
import Postgres
import TenantMigration

/// The operators' steps of a move, with their durations.
struct MoveProcedure: Sendable {
    let name: String
    /// Its number at the old installation.
    let environment: EnvironmentID
    let objectCount: Int
    let cutCount: Int
    let old: ScenarioStage
    let new: ScenarioStage
    let fleet: Fleet
    let tally: EntryTally

    private static let pollInterval = Duration.milliseconds(20)
    private static let arriveMax = Duration.seconds(600)
    /// Approximate size of an object in the stream, in bytes.
    private static let objectBytes = 500

    /// - Returns: The highest mutation number of each device with a response of the old installation.
    func move(_ report: inout ScenarioReport) async throws -> [Int64] {
        _ = try await fleet.takePauses()
        let begin = ContinuousClock.now
        let hold = Task { try await writeBlockedAt() }
        defer { hold.cancel() }
        let receipt = try await send(&report)
        let held = try await hold.value
        let heldRows = MoveTransfer(name: name, old: old.cluster, new: new.cluster).heldRowCount()
        report.addStep("copied while devices worked", since: begin, until: held)
        var last = report.addStep("copied while write-blocked", since: held, rows: heldRows)
        let answered = try await fleet.answered()
        // The environment is write-blocked at both installations.
        async let before = digests(of: environment, at: .tables, old)
        let moved = try await new.pool.run { [name] in try MoveStore.find(name, on: &$0)?.environment }
        guard let moved else { throw ClusterFailure("the environment did not arrive") }
        async let after = digests(of: moved, at: .arrived, new)
        MoveJudge.compare(try await before, try await after, &report)
        last = report.addStep("compared", since: last)
        let token = try await command("cut-over", receipt, "--to", new.cluster.gatewayURL, on: old)
        last = report.addStep("cut over", since: last)
        _ = try await command("activate", token.filter { !$0.isWhitespace }, on: new)
        last = report.addStep("activate", since: last)
        report.add("write-blocked", (last - held).inSeconds, "s")
        old.console.log("the environment is active at the new installation")
        let released = tally.now.states[.released, default: 0]
        try await wait("every device has a response of the new installation") {
            try await fleet.count(at: new.cluster.gatewayURL, beyond: answered) == fleet.members.count
        }
        report.addStep("until the last device had a response", since: last)
        let pauses = try await fleet.takePauses().sorted()
        try await wait("entries are released at the new installation") {
            tally.now.states[.released, default: 0] > released
        }
        report.addStep("until an entry was released", since: last)
        report.add("longest pause of a device", pauses.last ?? 0, "s")
        report.add("median of the devices' longest pauses", pauses.isEmpty ? 0 : pauses[pauses.count / 2], "s")
        return answered
    }

    /// Waits until each object of the environment's own kind is published.
    func waitForForms(in moved: EnvironmentID, _ report: inout ScenarioReport) async throws {
        let count = try await new.pool.run { try $0.run(MoveSeed.formCount(in: moved))[0].decode(Int64.self) }
        let (topic, brokers) = (Topic.ownName(MoveSeed.topic, of: name), new.cluster.brokers)
        try await wait("all objects are on \(topic)") {
            try await onOwnThread {
                let admin = try Admin(brokers: brokers)
                let metadata = try admin.metadata()
                let partitions = metadata.leaders.keys.filter { $0.topic == topic }
                let ends = admin.offsetsByLeader(at: .end, of: partitions, metadata).offsets
                return ends.values.reduce(0, +) >= count
            }
        }
        report.add("objects of an own kind published", count)
    }

    private func command(_ step: String, _ arguments: String..., on stage: ScenarioStage) async throws -> String {
        try await stage.cluster.runCommand(
            ["environment", step, name] + arguments + ["--key-from", MoveTransfer.keyVariable],
            variables: [MoveTransfer.keyVariable: MoveTransfer.key])
    }

    /// Transfers the environment; the stream is cut `cutCount` times.
    private func send(_ report: inout ScenarioReport) async throws -> String {
        let transfer = MoveTransfer(name: name, old: old.cluster, new: new.cluster)
        var memory: [String: Double] = [:]
        var resume: String?
        for cut in 0... {
            let isLast = cut >= cutCount
            let bytes = isLast ? nil : max(1, objectCount * Self.objectBytes / (2 * (cutCount + 1)))
            switch try await transfer.send(resume: resume, cutAfter: bytes, memory: &memory) {
            case .complete(let receipt):
                for command in ["export", "import"] {
                    report.add("peak memory of \(command)", memory[command] ?? 0, "MB")
                }
                return receipt
            case .cut(let position):
                let how = position == nil ? "restarts" : "resumes"
                old.console.log("the stream was cut, and \(how)")
                resume = position
            }
        }
        throw ClusterFailure("every stream was cut")
    }

    private func writeBlockedAt() async throws -> ContinuousClock.Instant {
        while true {
            let isHeld = try await old.pool.run { [name] in try MoveStore.find(name, on: &$0)?.state == .held }
            if isHeld { return .now }
            try await Task.sleep(for: Self.pollInterval)
        }
    }

    private func digests(
        of environment: EnvironmentID, at source: MoveDigest.Source, _ stage: ScenarioStage
    ) async throws -> [String: MoveDigest] {
        try await stage.pool.run { try MoveDigest.ofOthers(environment, at: source, on: &$0) }
    }

    private func wait(_ condition: String, _ isMet: () async throws -> Bool) async throws {
        try await waitUntil(condition, within: Self.arriveMax, interval: Self.pollInterval, isMet)
    }
}

extension ScenarioReport {
    /// Adds a step, which ends now unless given.
    ///
    /// - Returns: The time of its end.
    @discardableResult
    fileprivate mutating func addStep(
        _ name: String, since start: ContinuousClock.Instant, until end: ContinuousClock.Instant = .now,
        rows: Int? = nil
    ) -> ContinuousClock.Instant {
        let seconds = (end - start).inSeconds
        var values = ["seconds": seconds]
        if let rows { values.merge(["rows": Double(rows), "rows/s": Double(rows) / max(seconds, 0.001)]) { $1 } }
        steps.append(Step(name: name, values: values))
        return end
    }
}

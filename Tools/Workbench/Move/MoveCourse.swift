import Essentials
import FoundationEssentials
import LocalCluster
import Model
import Postgres
import TenantMigration

/// The move itself, step by step as the documents say it, with a clock beside it.
struct MoveCourse: Sendable {
    struct Place: Sendable {
        let cluster: LocalCluster
        let pool: Pool
    }

    let name: String
    /// Its number at the old place.
    let environment: EnvironmentID
    let objectCount: Int
    let cutCount: Int
    let old: Place
    let new: Place
    let fleet: MoveFleet
    let console: DemoConsole

    private static let lookInterval = Duration.milliseconds(20)
    private static let arriveMax = Duration.seconds(600)
    /// Bytes of an object in the stream, about.
    private static let objectBytes = 500

    /// - Returns: Up to which number each device was answered at the old place.
    func move(_ report: inout MoveReport) async throws -> [Int64] {
        _ = await fleet.takePauses()
        let begin = ContinuousClock.now
        let hold = Task { try await heldAt() }
        defer { hold.cancel() }
        let receipt = try await send(&report)
        let arrived = ContinuousClock.now
        let held = try await hold.value
        let answered = await fleet.answered()
        // Nobody writes it at either place now.
        async let before = digests(of: environment, at: .tables, old)
        let here = try await new.pool.run { [name] in try MoveStore.find(name, on: &$0)?.environment }
        guard let here else { throw ClusterFailure("nothing arrived") }
        async let after = digests(of: here, at: .arrived, new)
        MoveJudge.compare(try await before, try await after, &report)
        let compared = ContinuousClock.now
        let permission = try await old.cluster.runCommand(
            [
                "environment", "leave", name, receipt, "--to", new.cluster.gatewayURL, "--key-from",
                MoveTransfer.keyVariable,
            ], variables: [MoveTransfer.keyVariable: MoveTransfer.key])
        let left = ContinuousClock.now
        try await new.cluster.runCommand(
            [
                "environment", "begin", name, permission.filter { !$0.isWhitespace }, "--key-from",
                MoveTransfer.keyVariable,
            ], variables: [MoveTransfer.keyVariable: MoveTransfer.key])
        let begun = ContinuousClock.now
        console.say("it has begun at the new place")
        let released = fleet.tally.now.statuses[.released, default: 0]
        try await until("every device is answered at the new place") {
            await fleet.count(at: new.cluster.gatewayURL, beyond: answered) == fleet.devices.count
        }
        let back = ContinuousClock.now
        report.pauses = await fleet.takePauses()
        try await until("entries are released at the new place") {
            fleet.tally.now.statuses[.released, default: 0] > released
        }
        let releasedAt = ContinuousClock.now
        report.held = (begun - held).inSeconds
        report.phases = [
            .init(name: "copied while it worked", seconds: (held - begin).inSeconds),
            .init(
                name: "the rest, while it was held", seconds: (arrived - held).inSeconds,
                rows: MoveTransfer(name: name, old: old.cluster, new: new.cluster).heldRowCount()),
            .init(name: "compared", seconds: (compared - arrived).inSeconds),
            .init(name: "leave", seconds: (left - compared).inSeconds),
            .init(name: "begin", seconds: (begun - left).inSeconds),
            .init(name: "until the last device was answered", seconds: (back - begun).inSeconds),
            .init(name: "until one saw an entry released", seconds: (releasedAt - begun).inSeconds),
        ]
        return answered
    }

    /// Sends all of it, with the cuts that are to be.
    private func send(_ report: inout MoveReport) async throws -> String {
        let transfer = MoveTransfer(name: name, old: old.cluster, new: new.cluster)
        var memory = MoveTransfer.Memory()
        var resume: String?
        for cut in 0... {
            let isLast = cut >= cutCount
            let bytes = isLast ? nil : max(1, objectCount * Self.objectBytes / (2 * (cutCount + 1)))
            switch try await transfer.send(resume: resume, cutAfter: bytes, memory: &memory) {
            case .whole(let receipt):
                (report.exportMemory, report.importMemory) = (memory.export, memory.imported)
                return receipt
            case .cut(let place):
                let how = place == nil ? "from the beginning" : "where it stopped"
                console.say("the stream was cut, and goes on \(how)")
                resume = place
            }
        }
        throw ClusterFailure("the stream was always cut")
    }

    private func heldAt() async throws -> ContinuousClock.Instant {
        while true {
            let isHeld = try await old.pool.run { [name] in try MoveStore.find(name, on: &$0)?.state == .held }
            if isHeld { return .now }
            try await Task.sleep(for: Self.lookInterval)
        }
    }

    private func digests(
        of environment: EnvironmentID, at sort: MoveDigest.Place, _ place: Place
    ) async throws -> [String: MoveDigest] {
        try await place.pool.run { try MoveDigest.ofOthers(environment, at: sort, on: &$0) }
    }

    private func until(_ what: String, _ condition: () async -> Bool) async throws {
        let deadline = ContinuousClock.now + Self.arriveMax
        while await !condition() {
            guard .now < deadline else { throw ClusterFailure("not within \(Self.arriveMax): \(what)") }
            try await Task.sleep(for: Self.lookInterval)
        }
    }
}

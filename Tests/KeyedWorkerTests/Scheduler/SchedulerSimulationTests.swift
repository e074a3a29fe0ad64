import Essentials
import TestSupport
import Testing

/// The engine of a worker (`WorkScheduler`, as `Worker` runs it) in a simulated system: two workers of one group,
/// editing devices, repeated messages, and calls that are lost, late, rejected or never made. The back end is
/// unavailable or requests pauses. Environments are locked, PostgreSQL rejects rows or is unavailable, workers crash or
/// stop, partitions move, and messages are lost.
///
/// Invariants:
/// 1. pending work survives any crash, as an unfinished message or a deferred key;
/// 2. an edit is decided as an edit, or deferred, before its message is finished, and a deferred key is decided as
///   edited, regardless of its events;
/// 3. a worker makes one call per key at a time, uses all slots of an environment, and takes keys up to its capacity.
///
/// When quiescent, which is reached:
/// 4. every version that the back end is recorded to have was written to it once;
/// 5. nothing is deferred, in flight or unread.
@Suite(.ownThreads) struct SchedulerSimulationTests {
    private static let stepCount = 4_000
    private static let activeCount = 500
    private static let worldCount = 10

    @Test(arguments: Seeds.random(8, for: "scheduler")) func workIsNeitherLostNorRepeated(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        var counts: [String: Int] = [:]
        for worldSeed in (0..<Self.worldCount).map({ _ in random.next() }) {
            let world = try Self.run(seed: worldSeed, mistake: nil)
            counts.merge(world.counts, uniquingKeysWith: +)
        }
        for what in [
            "quiescent states", "messages", "covered events", "decisions", "conflicts", "calls", "crashes", "moves",
            "lost transports",
            "failures", "no edits",
            "rejected", "dead-lettered keys", "opened circuits", "closed circuits", "requested pauses",
            "locked environments",
            "unlocked environments",
        ] {
            #expect(counts[what, default: 0] > 0, "seed \(seed): \(what)")
        }
    }

    /// The simulation detects each deliberate mistake, with the seeds from 1 on.
    @Test(arguments: Mistake.allCases) func simulationDetectsEachMistake(mistake: Mistake) {
        for seed in 1...300 as ClosedRange<UInt64> {
            if (try? Self.run(seed: seed, mistake: mistake)) == nil { return }
        }
        Issue.record("\(mistake) was not found")
    }

    private static func run(seed: UInt64, mistake: Mistake?) throws -> SchedulerSimulation {
        var world = try SchedulerSimulation(seed: seed, mistake: mistake)
        do {
            for step in 1...stepCount {
                try world.step()
                if step % activeCount == 0 { try world.settle() }
            }
        } catch {
            throw SimulationFailure(description: "seed \(seed): \(error)")
        }
        return world
    }
}
